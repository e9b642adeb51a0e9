// TD_CLONES marks a kernel that is compiled for several machines, of which the loader picks one. configure fills it in;
// without it there is one version.
#ifndef TD_DEVICE_CPU_CLONES_H
#define TD_DEVICE_CPU_CLONES_H
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifndef TD_CLONES
#define TD_CLONES
#endif
#endif
