/* SPDX-License-Identifier: MIT */
/*
 * Reads single lines of /proc and /sys.
 */
#include "tools/doctor/subjects.h"

#include <stdio.h>
#include <string.h>

bool doctor_line(const char *path, const char *name, char *out, size_t size)
{
	FILE *file = fopen(path, "re");
	bool is_found = false;
	char line[1024];

	out[0] = '\0';
	while (file != NULL && !is_found && fgets(line, sizeof(line), file) != NULL) {
		size_t length = name == NULL ? 0 : strlen(name);
		const char *value = line + length;

		if (length > 0 && (memcmp(line, name, length) != 0 || *value++ != ':')) {
			continue;
		}
		value += strspn(value, " \t");
		snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
		is_found = true;
	}
	if (file != NULL) {
		fclose(file);
	}
	return is_found;
}
