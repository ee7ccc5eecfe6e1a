/* SPDX-License-Identifier: MIT */
/* Everything: includes each public header. */
#ifndef PINION_PINION_H
#define PINION_PINION_H

#include <pinion/buffer.h>
#include <pinion/config.h>
#include <pinion/file.h>
#include <pinion/log.h>
#include <pinion/machine.h>
#include <pinion/request.h>
#include <pinion/runtime.h>
#include <pinion/scan.h>
#include <pinion/task.h>
#include <pinion/timer.h>
#include <pinion/version.h>
#include <pinion/walk.h>
#include <pinion/work.h>
#include <pinion/yield.h>

#endif
