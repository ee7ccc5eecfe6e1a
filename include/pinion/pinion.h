/* SPDX-License-Identifier: MIT */
/* Everything: includes each public header. They are C11 or C++11. */
#ifndef PINION_PINION_H
#define PINION_PINION_H

#include <pinion/admission.h>
#include <pinion/allocator.h>
#include <pinion/budget.h>
#include <pinion/buffer.h>
#include <pinion/call.h>
#include <pinion/channel.h>
#include <pinion/checkpoint.h>
#include <pinion/chunk.h>
#include <pinion/config.h>
#include <pinion/fault.h>
#include <pinion/file.h>
#include <pinion/future.h>
#include <pinion/group.h>
#include <pinion/hooks.h>
#include <pinion/lane.h>
#include <pinion/limit.h>
#include <pinion/log.h>
#include <pinion/machine.h>
#include <pinion/metrics.h>
#include <pinion/policy.h>
#include <pinion/pool.h>
#include <pinion/request.h>
#include <pinion/retry.h>
#include <pinion/runtime.h>
#include <pinion/scan.h>
#include <pinion/task.h>
#include <pinion/thread_pool.h>
#include <pinion/timer.h>
#include <pinion/trace.h>
#include <pinion/tuning.h>
#include <pinion/version.h>
#include <pinion/wait.h>
#include <pinion/walk.h>
#include <pinion/work.h>
#include <pinion/yield.h>

#endif
