/* Straight-line runs for any CPU. */
#define MACHINE straight_base
#include "straight_machine.h"
