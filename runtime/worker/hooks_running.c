/* SPDX-License-Identifier: MIT */
/*
 * Names of functions.
 */
#include "runtime/worker/worker.h"

#include <dlfcn.h>
#include <stdio.h>

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

void pin_running_describe(pin_fault_fn function, char out_name[PIN_RUNNING_NAME_BYTES])
{
	void *address;
	Dl_info found;

	memcpy(&address, &function, sizeof(address));
	if (dladdr(address, &found) == 0 || found.dli_fname == NULL) {
		snprintf(out_name, PIN_RUNNING_NAME_BYTES, "%p", address);
	} else if (found.dli_sname != NULL && found.dli_saddr == address) {
		snprintf(out_name, PIN_RUNNING_NAME_BYTES, "%s (%s)", found.dli_sname,
			base_name(found.dli_fname));
	} else {
		snprintf(out_name, PIN_RUNNING_NAME_BYTES, "%s+0x%zx", base_name(found.dli_fname),
			(size_t)((char *)address - (char *)found.dli_fbase));
	}
}
