// Checkpointing: the records that a function made keep nothing for backward; when a pass comes to them the function
// runs once more, and what its ops would have saved is put where it is missing, until the pass has left the region.
//  1. The second run makes no records: its n-th recorded op is the region's n-th record, and its results get that one's
//     origin, so derivatives of any order, closures and Variables work as if nothing had been dropped.
//  2. It draws the same random numbers.
//  3. When it does something else than the first one, because a Variable was assigned in between, the pass fails.
#include <string.h>
#include "engine/base/memory.h"
#include "engine/tape/state.h"

int td_region_begin(td_context *context, const td_rerun *rerun, td_region **region) {
  td_tapes *tapes = td_tapes_of(context);
  td_region *r = tapes ? td_memory_new_zero(sizeof *r) : NULL;
  *region = r;
  if (!r) {
    rerun->release(rerun->owner);
    return td_error_memory(context, "checkpoint", (int64_t)sizeof *r);
  }
  r->refs = 1;
  r->rerun = *rerun;
  r->counter = context->counter;
  if (!tapes->region && !tapes->replaying) tapes->region = r; // a checkpoint inside of another one is part of that
  return TD_OK;
}

void td_region_end(td_context *context, td_region *region) {
  td_tapes *tapes = context->tapes;
  if (tapes->region == region) tapes->region = NULL;
  td_region_unref(region);
}

void td_region_kept(const td_region *region, td_each_tensor *each, void *argument) {
  if (region->rerun.kept) region->rerun.kept(region->rerun.owner, each, argument);
}

void td_region_unref(td_region *region) {
  if (!region || --region->refs) return;
  region->rerun.release(region->rerun.owner);
  td_memory_free(region->records);
  td_memory_free(region);
}

int td_region_add(td_context *context, td_region *region, td_record *record) {
  if (region->count == region->capacity) {
    uint32_t capacity = region->capacity ? region->capacity * 2 : 16;
    td_record **grown = td_memory_resize(region->records, (size_t)capacity * sizeof *grown);
    if (!grown) return td_error_memory(context, "checkpoint", capacity * (int64_t)sizeof *grown);
    region->records = grown;
    region->capacity = capacity;
  }
  record->region = region;
  record->region_index = region->count;
  region->records[region->count++] = record;
  region->refs++;
  return TD_OK;
}

void td_region_forget(td_record *record) {
  td_region *region = record->region;
  region->records[record->region_index] = NULL;
  record->region = NULL;
  td_region_unref(region);
}

// ---- the second run ----

// Whether this op is the region's record: the same op on what the record's tracked inputs were.
static bool matches(const td_record *record, const td_op *op, td_tensor *const *in, int in_count) {
  if (record->op != op || record->in_count != in_count) return false;
  for (int i = 0; i < in_count; i++) {
    const td_record *parent = record->parents[i];
    if (parent && (!in[i] || in[i]->origin != &parent->origin || in[i]->output != record->parent_output[i]))
      return false;
  }
  return true;
}

int td_region_replay(td_context *context, const td_op *op, td_tensor *const *in, int in_count, td_tensor **out,
                     int out_count) {
  td_tapes *tapes = context->tapes;
  td_region *region = tapes->replaying;
  while (region->next < region->count && !region->records[region->next]) region->next++; // nobody needs it any more
  if (region->next == region->count || tapes->no_grad > region->no_grad) return TD_OK;
  td_record *record = region->records[region->next];
  if (!matches(record, op, in, in_count)) return TD_OK;
  region->next++;
  for (int k = 0; k < out_count; k++)
    if (!td_record_own_output(context, &out[k])) return context->error.code;
  if (record->keepers && !td_record_save(context, record, in, out)) return context->error.code;
  for (int k = 0; k < out_count; k++) {
    out[k]->origin = td_origin_ref(&record->origin);
    out[k]->output = (uint8_t)k;
  }
  return TD_OK;
}

static int refuse_change(td_context *context, const td_region *region) {
  char line[80];
  td_place_describe(context, region->records[region->next]->place, line, sizeof line);
  td_error_set(context, TD_ERROR_STATE, "checkpoint: running the function again did not lead to %s at %s",
               td_record_name_of(region->records[region->next]).text, line);
  td_error_hint(context,
                "assign no Variable that it reads, and nothing else that it depends on, before the gradient is taken");
  return TD_ERROR_STATE;
}

static int fill(td_context *context, td_region *region) {
  td_tapes *tapes = context->tapes;
  td_region *outer = tapes->replaying;
  uint64_t counter = context->counter;
  td_place place = context->place;
  if (region->users++) return TD_OK;
  region->next = 0;
  region->no_grad = tapes->no_grad;
  tapes->replaying = region;
  td_tapes_update(context);
  context->counter = region->counter;
  region->refs++;
  int code = region->rerun.run(region->rerun.owner);
  context->counter = counter;
  context->place = place;
  tapes->replaying = outer;
  td_tapes_update(context);
  while (region->next < region->count && !region->records[region->next]) region->next++;
  if (!code && region->next < region->count) code = refuse_change(context, region);
  td_region_unref(region);
  return code;
}

static void empty(td_region *region) {
  if (--region->users) return;
  for (uint32_t n = 0; n < region->count; n++)
    if (region->records[n]) td_record_drop_saved(region->records[n]);
}

// Records of a checkpoint lie behind each other; it is filled while the pass is among them.
int td_region_move(td_context *context, td_region *next, td_region **region) {
  td_region *left = *region;
  if (left == next) return TD_OK;
  *region = next;
  if (next) next->refs++;
  int code = next ? fill(context, next) : TD_OK;
  if (left) empty(left);
  td_region_unref(left);
  return code;
}
