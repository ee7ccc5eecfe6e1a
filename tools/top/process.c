/* SPDX-License-Identifier: MIT */
#include "tools/top/process.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STAT_BYTES = 1024 };

/* The bytes read, less a newline at the end; "" and 0: none. */
static size_t read_text(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, out, size - 1);

	if (fd >= 0) {
		close(fd);
	}
	length = length < 0 ? 0 : length;
	if (length > 0 && out[length - 1] == '\n') {
		length--;
	}
	out[length] = '\0';
	return (size_t)length;
}

static bool is_number(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits > 0 && digits < 10 && text[digits] == '\0';
}

/*
 * A process whose main thread alone has ended lives: it is in state Z, too.
 * These are the values after the name, which may have spaces and brackets.
 */
static bool parse_stat(char *rest, struct top_process *process)
{
	unsigned long long user;
	unsigned long long system;
	unsigned long long threads;
	unsigned long long start;
	long hz = sysconf(_SC_CLK_TCK);

	if (sscanf(rest,
		    ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu %*s %*s %*s %*s %llu "
		    "%*s %llu",
		    &process->state, &user, &system, &threads, &start) != 5 ||
		(process->state == 'Z' && threads <= 1) || process->state == 'X') {
		return false;
	}
	process->start = start;
	process->cpu_ns = (user + system) * (UINT64_C(1000000000) / (uint64_t)(hz > 0 ? hz : 100));
	return true;
}

bool top_process_read(int pid, struct top_process *out_process)
{
	char path[64];
	char stat[STAT_BYTES];
	char *name;
	char *end;
	size_t length;

	*out_process = (struct top_process){.pid = pid};
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	read_text(path, stat, sizeof(stat));
	name = strchr(stat, '(');
	end = strrchr(stat, ')');
	if (name == NULL || end == NULL || end < name) {
		return false;
	}
	length = (size_t)(end - name) - 1;
	length = length < TOP_COMM_BYTES ? length : TOP_COMM_BYTES - 1;
	memcpy(out_process->comm, name + 1, length);
	return parse_stat(end, out_process);
}

/* The kernel calls them so, and by the number of the thread that submits. */
static bool is_io_wq(int pid, const char *thread)
{
	static const char prefix[] = "iou-wrk-";
	char path[64];
	char comm[TOP_COMM_BYTES];

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/comm", pid, thread);
	read_text(path, comm, sizeof(comm));
	return strncmp(comm, prefix, sizeof(prefix) - 1) == 0;
}

bool top_process_read_threads(int pid, struct top_threads *out_threads)
{
	const struct dirent *entry;
	char path[64];
	DIR *tasks;
	bool is_known = false;

	*out_threads = (struct top_threads){0};
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
		unsigned long long cpu_ns;
		unsigned long long wait_ns;
		char text[128];

		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/schedstat", pid, entry->d_name);
		read_text(path, text, sizeof(text));
		if (!is_number(entry->d_name) ||
			sscanf(text, "%llu %llu", &cpu_ns, &wait_ns) != 2) {
			continue;
		}
		is_known = true;
		out_threads->wait_ns += wait_ns;
		if (is_io_wq(pid, entry->d_name)) {
			out_threads->io_wq_count++;
			out_threads->io_wq_cpu_ns += cpu_ns;
		}
	}
	if (tasks != NULL) {
		closedir(tasks);
	}
	return is_known;
}

/* The last number of NSpid: what its own namespace calls it. */
static uint64_t own_number(int pid)
{
	char path[64];
	char text[2048];
	const char *line;
	const char *end;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	read_text(path, text, sizeof(text));
	line = strstr(text, "\nNSpid:");
	if (line == NULL) {
		return (uint64_t)pid;
	}
	end = strchr(line + 1, '\n');
	end = end == NULL ? line + strlen(line) : end;
	while (end > line && isdigit((unsigned char)end[-1])) {
		end--;
	}
	return strtoull(end, NULL, 10);
}

/* Whether that process is the writer: 1, 0, or negative: /proc does not say. */
struct candidate {
	int pid; /* 0: none */
	int is_writer;
};

/* A process that is known not to write the page is the last choice. */
static void consider(struct candidate *best, int pid, const struct pinion_metrics *metrics)
{
	int is_writer = pinion_metrics_is_open(metrics, pid);

	if (best->pid == 0 || is_writer == 1 || (is_writer < 0 && best->is_writer == 0)) {
		*best = (struct candidate){.pid = pid, .is_writer = is_writer};
	}
}

int top_process_find(uint64_t pid, uint64_t start, const struct pinion_metrics *metrics)
{
	struct candidate best = {.pid = 0};
	struct top_process process;
	size_t count;
	int *pids;

	if (pid > 0 && pid < INT32_MAX && top_process_read((int)pid, &process) &&
		(process.start == start || start == 0)) {
		consider(&best, (int)pid, metrics);
	}
	pids = best.is_writer == 1 || start == 0 ? NULL : top_process_list(&count);
	for (size_t i = 0; pids != NULL && i < count && best.is_writer != 1; i++) {
		if (top_process_read(pids[i], &process) && process.start == start &&
			own_number(pids[i]) == pid) {
			consider(&best, pids[i], metrics);
		}
	}
	free(pids);
	return best.pid;
}

bool top_process_is_ours(int pid)
{
	char path[64];
	struct stat status;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return stat(path, &status) == 0 && (geteuid() == 0 || status.st_uid == geteuid());
}

static int compare_numbers(const void *left, const void *right)
{
	int first = *(const int *)left;
	int second = *(const int *)right;

	return (first > second) - (first < second);
}

int *top_process_list(size_t *out_count)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	size_t capacity = 1024;
	size_t count = 0;
	int *pids = proc == NULL ? NULL : malloc(capacity * sizeof(*pids));

	while (pids != NULL && (entry = readdir(proc)) != NULL) {
		if (!is_number(entry->d_name)) {
			continue;
		}
		if (count == capacity) {
			int *more = realloc(pids, 2 * capacity * sizeof(*pids));

			if (more == NULL) {
				free(pids);
				pids = NULL;
				break;
			}
			pids = more;
			capacity *= 2;
		}
		pids[count++] = atoi(entry->d_name);
	}
	if (proc != NULL) {
		closedir(proc);
	}
	if (pids != NULL) {
		qsort(pids, count, sizeof(*pids), compare_numbers);
	}
	*out_count = count;
	return pids;
}

bool top_boot_is(const char *boot_id)
{
	char now[64];

	/* Unknown on either side is no proof of another boot. */
	return read_text("/proc/sys/kernel/random/boot_id", now, sizeof(now)) == 0 ||
		boot_id[0] == '\0' || strcmp(now, boot_id) == 0;
}
