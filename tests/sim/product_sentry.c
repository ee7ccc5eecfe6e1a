/* SPDX-License-Identifier: MIT */
/*
 * The real core/sentry.c, with calls that a defect may spoil.
 */
#include "runtime/core/relief.h"
#include "runtime/core/sentry.h"
#include "runtime/core/wake.h"
#include "tests/sim/defect.h"

#define pin_wake_one(...) (defect_is(DEFECT_SENTRY_BLIND) ? (void)0 : pin_wake_one(__VA_ARGS__))

#include "runtime/core/sentry.c"
