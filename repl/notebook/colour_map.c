// See colour_map.h.
#include "repl/notebook/colour_map.h"
#include <math.h>
#include <string.h>

enum { TERMS = 7, STOPS = 5 };

struct td_colour_map {
  const char *name;
  const double (*polynomial)[TERMS]; // red, green, blue by powers of the place; NULL: stops
  uint32_t stops[STOPS]; // at 0, 1/4 ... 1, straight between
};

// Fits of matplotlib's tables (public domain) of the sixth degree, by M. Zucker.
static const double viridis[3][TERMS] = {{0.2777273272234177, 0.1050930431085774, -0.3308618287255563,
                                          -4.634230498983486, 6.228269936347081, 4.776384997670288, -5.435455855934631},
                                         {0.005407344544966578, 1.404613529898575, 0.214847559468213,
                                          -5.799100973351585, 14.17993336680509, -13.74514537774601, 4.645852612178535},
                                         {0.3340998053353061, 1.384590162594685, 0.09509516302823659,
                                          -19.33244095627987, 56.69055260068105, -65.35303263337234, 26.3124352495832}};
static const double magma[3][TERMS] = {{-0.002136485053939582, 0.2516605407371642, 8.353717279216625,
                                        -27.66873308576866, 52.17613981234068, -50.76852536473588, 18.65570506591883},
                                       {-0.000749655052795221, 0.6775232436837668, -3.577719514958484,
                                        14.26473078096533, -27.94360607168351, 29.04658282127291, -11.48977351997711},
                                       {-0.005386127855323933, 2.494026599312351, 0.3144679030132573,
                                        -13.64921318813922, 12.94416944238394, 4.23415299384598, -5.601961508734096}};

static const td_colour_map maps[] = {{"viridis", viridis, {0}},
                                     {"magma", magma, {0}},
                                     {"grey", 0, {0x000000, 0x404040, 0x808080, 0xBFBFBF, 0xFFFFFF}},
                                     {"coolwarm", 0, {0x3B4CC0, 0x8DB0FE, 0xDDDDDD, 0xF49A7B, 0xB40426}}};
enum { MAPS = sizeof maps / sizeof *maps };

const td_colour_map *td_colour_map_find(const char *name) {
  if (!strcmp(name, "gray")) name = "grey";
  for (int i = 0; i < MAPS; i++)
    if (!strcmp(maps[i].name, name)) return &maps[i];
  return NULL;
}

const char *td_colour_map_names(void) { return "viridis, magma, grey and coolwarm"; }

const char *td_colour_map_name(const td_colour_map *map) { return map->name; }

static double between_stops(const td_colour_map *map, double place, int shift) {
  int at = place < 1 ? (int)(place * (STOPS - 1)) : STOPS - 2;
  double share = place * (STOPS - 1) - at;
  double from = map->stops[at] >> shift & 255, to = map->stops[at + 1] >> shift & 255;
  return (from + (to - from) * share) / 255;
}

static double by_polynomial(const double *terms, double place) {
  double sum = 0;
  for (int i = TERMS; i--;) sum = sum * place + terms[i];
  return sum;
}

uint32_t td_colour_map_at(const td_colour_map *map, double place) {
  if (place != place) return TD_COLOUR_NAN;
  if (isinf(place)) return place > 0 ? TD_COLOUR_RISES : TD_COLOUR_FALLS;
  place = fmin(fmax(place, 0), 1);
  uint32_t rgb = 0;
  for (int i = 0; i < 3; i++) {
    double part = map->polynomial ? by_polynomial(map->polynomial[i], place) : between_stops(map, place, 16 - 8 * i);
    rgb = rgb << 8 | (uint32_t)lround(fmin(fmax(part, 0), 1) * 255);
  }
  return rgb;
}

bool td_colour_is_mark(uint32_t rgb) {
  return rgb == TD_COLOUR_NAN || rgb == TD_COLOUR_RISES || rgb == TD_COLOUR_FALLS;
}
