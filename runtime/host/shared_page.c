/* SPDX-License-Identifier: MIT */
/*
 * Creates, seals and names the memory of a metrics page.
 *
 * Called by the creation and the end of a runtime.
 *
 * Invariant: a failure leaves no descriptor, mapping or file.
 */
#include "runtime/host/shared_page.h"
#include "runtime/base/check.h"
#include "runtime/base/utf8.h"
#include "runtime/host/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pinion/version.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Of <linux/memfd.h> and <linux/fcntl.h>, which older systems lack. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum {
	STAT_BYTES = 1024,
	STATUS_BYTES = 3072, /* before it are some 15 lines, and the groups */
	START_FIELD = 22,
	/* Others that take the name at the same time make it start again. */
	NAME_TRIES = 8,
	NUMBER_BYTES = 12,
};

/* ---- descriptors ---- */

/*
 * Pages that have one. Changed while no thread forks, together with the
 * descriptor: a child closes those of the pages, and no file that has got such
 * a number meanwhile.
 */
static struct pin_shared_page *newest;

static void close_in_child(void)
{
	for (struct pin_shared_page *page = newest; page != NULL; page = page->next) {
		close(page->fd);
		page->fd = -1;
	}
	newest = NULL;
}

/* Called while no thread forks, on the result of an open. */
static void add_page(struct pin_shared_page *page)
{
	PIN_DCHECK(page->next == NULL);
	if (page->fd >= 0) {
		page->next = newest;
		newest = page;
	}
}

static void close_page(struct pin_shared_page *page)
{
	struct pin_shared_page **link = &newest;

	pin_fork_block();
	while (*link != NULL && *link != page) {
		link = &(*link)->next;
	}
	if (*link != NULL) {
		*link = page->next;
		/*
		 * A close alone leaves the lock while others refer to the file:
		 * a readlink(2) of /proc/PID/fd, say.
		 */
		(void)flock(page->fd, LOCK_UN);
		close(page->fd);
	}
	page->fd = -1;
	pin_fork_unblock();
}

/* ---- making ---- */

/* Beyond its limit of file sizes a process gets a signal that ends it. */
static bool is_within_limit(size_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
		limit.rlim_cur >= bytes;
}

/* Kernels before 6.3 do not know the flag; others may insist on it. */
static int open_anonymous(const char *label)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(label, flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL) {
		fd = memfd_create(label, flags);
	}
	return fd;
}

/* Whether the open file may go: an older page, or an empty file. */
static bool may_replace(int fd, const char *mark)
{
	char start[PIN_SHARED_PAGE_MARK] = {0};
	struct stat status;

	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
		return false;
	}
	return status.st_size == 0 ||
		(pread(fd, start, sizeof(start), 0) == (ssize_t)sizeof(start) &&
			memcmp(start, mark, sizeof(start)) == 0);
}

/* The file of that name, -ENOENT, or -EEXIST: it must stay. */
static int open_former(const char *name, const char *mark)
{
	struct stat status;
	int fd;

	if (lstat(name, &status) != 0) {
		return errno == ENOENT ? -ENOENT : -EEXIST;
	}
	/* The open of a pipe or of a device might be noticed. */
	if (!S_ISREG(status.st_mode)) {
		return -EEXIST;
	}
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0) {
		return errno == ENOENT ? -ENOENT : -EEXIST;
	}
	if (!may_replace(fd, mark)) {
		close(fd);
		return -EEXIST;
	}
	return fd;
}

/* -1 and errno: it has none. */
static int open_draft(struct pin_shared_page *page, const char *path)
{
	static const char ending[] = ".XXXXXX";
	size_t bytes = strlen(path) + sizeof(ending);
	int former = open_former(path, page->mark);

	PIN_DCHECK(page->draft == NULL);
	if (former == -EEXIST) {
		errno = EEXIST;
		return -1;
	}
	if (former >= 0) {
		close(former);
	}
	page->draft = malloc(bytes);
	if (page->draft == NULL) {
		errno = ENOMEM;
		return -1;
	}
	snprintf(page->draft, bytes, "%s%s", path, ending);
	pin_fork_block();
	page->fd = mkostemp(page->draft, O_CLOEXEC);
	add_page(page);
	pin_fork_unblock();
	if (page->fd < 0) {
		free(page->draft);
		page->draft = NULL;
		return -1;
	}
	/* Where files cannot be locked it goes on without. */
	(void)flock(page->fd, LOCK_EX | LOCK_NB);
	return 0;
}

/* No other process finds it any more; the memory stays. */
static void hide(struct pin_shared_page *page)
{
	if (page->draft != NULL) {
		unlink(page->draft);
		free(page->draft);
		page->draft = NULL;
	}
	close_page(page);
}

static int fail(struct pin_shared_page *page, const char *call, int error, const char **out_call)
{
	PIN_DCHECK(error > 0);
	*out_call = call;
	pin_shared_page_destroy(page);
	return -error;
}

/* A mapping keeps the file locked, as a descriptor does. 0, or an errno. */
static int map(struct pin_shared_page *page, size_t bytes, const char **out_call)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, page->fd, 0);

	*out_call = "mmap";
	if (memory == MAP_FAILED) {
		return errno;
	}
	page->memory = memory;
	page->bytes = bytes;
	*out_call = "madvise";
	return madvise(memory, bytes, MADV_DONTFORK) == 0 ? 0 : errno;
}

/* All of its blocks, so that no later store finds the disk full. */
static int take_memory(struct pin_shared_page *page, size_t bytes, const char **out_call)
{
	int error;

	PIN_DCHECK(page->fd >= 0 && page->memory == NULL);
	do {
		error = posix_fallocate(page->fd, 0, (off_t)bytes);
	} while (error == EINTR);
	if (error != 0) {
		return fail(page, "posix_fallocate", error, out_call);
	}
	pin_fork_block();
	error = map(page, bytes, out_call);
	pin_fork_unblock();
	return error == 0 ? 0 : fail(page, *out_call, error, out_call);
}

int pin_shared_page_create_unnamed(
	struct pin_shared_page *page, size_t bytes, const char *label, const char **out_call)
{
	*page = (struct pin_shared_page){.fd = -1};
	if (!is_within_limit(bytes)) {
		return fail(page, "setrlimit(RLIMIT_FSIZE)", EFBIG, out_call);
	}
	pin_forked_watch(close_in_child);
	pin_fork_block();
	page->fd = open_anonymous(label);
	add_page(page);
	pin_fork_unblock();
	return page->fd < 0 ? fail(page, "memfd_create", errno, out_call)
			    : take_memory(page, bytes, out_call);
}

int pin_shared_page_create(struct pin_shared_page *page, size_t bytes, const char *path,
	const char *mark, const char **out_call)
{
	if (path == NULL) {
		return pin_shared_page_create_unnamed(page, bytes, PIN_SHARED_PAGE_NAME, out_call);
	}
	*page = (struct pin_shared_page){.fd = -1};
	memcpy(page->mark, mark, sizeof(page->mark));
	if (!is_within_limit(bytes)) {
		return fail(page, "setrlimit(RLIMIT_FSIZE)", EFBIG, out_call);
	}
	pin_forked_watch(close_in_child);
	return open_draft(page, path) < 0 ? fail(page, "open", errno, out_call)
					  : take_memory(page, bytes, out_call);
}

/* The seal on later writers came with Linux 5.1. */
static int seal(int fd)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW;

	if (fcntl(fd, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0) {
		return 0;
	}
	return errno == EINVAL ? fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SEAL) : -1;
}

/* -EEXIST: meanwhile another has the name. */
static int take_free_name(const char *draft, const char *name)
{
	if (renameat2(AT_FDCWD, draft, AT_FDCWD, name, RENAME_NOREPLACE) == 0) {
		return 0;
	}
	/* Not all file systems know the flag. */
	if (errno != EINVAL && errno != ENOSYS) {
		return -errno;
	}
	return rename(draft, name) == 0 ? 0 : -errno;
}

static bool has_name(int fd, const char *name)
{
	struct stat own;
	struct stat named;

	return fstat(fd, &own) == 0 && lstat(name, &named) == 0 && own.st_dev == named.st_dev &&
		own.st_ino == named.st_ino;
}

/*
 * While we have the former file locked no other replaces it. -EBUSY: its writer
 * lives. -EAGAIN: another has just replaced it.
 */
static int take_used_name(int former, const char *draft, const char *name)
{
	if (flock(former, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
		return -EBUSY;
	}
	if (!has_name(former, name)) {
		return -EAGAIN;
	}
	return rename(draft, name) == 0 ? 0 : -errno;
}

static int take_name(const struct pin_shared_page *page, const char *name)
{
	int rc = -EAGAIN;

	PIN_DCHECK(page->draft != NULL); /* the file that gets the name */
	for (int tries = 0; tries < NAME_TRIES && (rc == -EAGAIN || rc == -EEXIST); tries++) {
		int former = open_former(name, page->mark);

		if (former == -EEXIST) {
			return former;
		}
		if (former == -ENOENT) {
			rc = take_free_name(page->draft, name);
			continue;
		}
		rc = take_used_name(former, page->draft, name);
		close(former);
	}
	return rc == -EAGAIN || rc == -EEXIST ? -EBUSY : rc;
}

static int take_names(struct pin_shared_page *page, const char *path)
{
	size_t bytes = strlen(path) + NUMBER_BYTES;
	char *name = malloc(bytes);
	int rc = name == NULL ? -ENOMEM : take_name(page, path);

	for (uint32_t i = 1; i < PIN_SHARED_PAGE_NAMES && rc == -EBUSY; i++) {
		snprintf(name, bytes, "%s.%u", path, i);
		page->number = i;
		rc = take_name(page, name);
	}
	free(name);
	return rc;
}

int pin_shared_page_show(struct pin_shared_page *page, const char *path, const char **out_call)
{
	int rc;

	PIN_DCHECK(page->memory != NULL);
	PIN_DCHECK((path == NULL) == (page->draft == NULL)); /* as it was created */
	*out_call = path == NULL ? "fcntl(F_ADD_SEALS)" : "rename";
	if (path == NULL) {
		rc = seal(page->fd) == 0 ? 0 : -errno;
	} else {
		rc = take_names(page, path);
	}
	if (rc < 0) {
		hide(page);
		return rc;
	}
	free(page->draft);
	page->draft = NULL;
	return 0;
}

void pin_shared_page_destroy(struct pin_shared_page *page)
{
	if (page->memory != NULL) {
		munmap(page->memory, page->bytes);
	}
	hide(page);
	*page = (struct pin_shared_page){.fd = -1};
}

/* ---- who writes it ---- */

/* Of a small file, ended by a 0; false: there is none. */
static bool read_text(const char *path, char *out_text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	PIN_DCHECK(size > 0);
	out_text[0] = '\0';
	if (fd < 0) {
		return false;
	}
	length = read(fd, out_text, size - 1);
	close(fd);
	out_text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

/* The kernel's id of this boot, or "". */
static void read_boot_id(char out_id[PIN_BOOT_ID_BYTES])
{
	memset(out_id, 0, PIN_BOOT_ID_BYTES);
	if (read_text("/proc/sys/kernel/random/boot_id", out_id, PIN_BOOT_ID_BYTES)) {
		out_id[strcspn(out_id, "\n")] = '\0';
	}
}

uint64_t pin_process_start(int pid)
{
	char path[64];
	char text[STAT_BYTES];
	const char *at;

	if (pid == 0) {
		snprintf(path, sizeof(path), "/proc/self/stat");
	} else {
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	}
	if (!read_text(path, text, sizeof(text))) {
		return 0;
	}
	/* The second field is a name, which may have blanks and parentheses. */
	at = strrchr(text, ')');
	for (int field = 2; at != NULL && field < START_FIELD; field++) {
		at = strchr(at + 1, ' ');
	}
	return at == NULL ? 0 : strtoull(at + 1, NULL, 10);
}

uint64_t pin_process_inner_pid(int pid)
{
	char path[64];
	char text[STATUS_BYTES];
	const char *line;
	const char *end;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (!read_text(path, text, sizeof(text))) {
		return 0;
	}
	/* The last of its numbers. */
	line = strstr(text, "\nNSpid:");
	end = line == NULL ? NULL : strchr(line + 1, '\n');
	while (end != NULL && end > line && end[-1] != '\t' && end[-1] != ' ') {
		end--;
	}
	return end == NULL ? 0 : strtoull(end, NULL, 10);
}

uint64_t pin_unix_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void pin_page_owner_write(struct pin_page_owner *owner, uint64_t now_ns)
{
	PIN_DCHECK(pin_load_relaxed_u64(&owner->state) == 0); /* of a new page */
	owner->pid = (uint64_t)getpid();
	owner->process_start = pin_process_start(0);
	owner->created_ns = now_ns;
	owner->created_unix_ns = pin_unix_now_ns();
	read_boot_id(owner->boot_id);
	pin_utf8_copy(owner->program, sizeof(owner->program), program_invocation_short_name);
	snprintf(owner->library, sizeof(owner->library), "%s", PINION_VERSION_STRING);
	/* Relaxed: the mark's release comes after it. */
	pin_store_relaxed_u64(&owner->state, PIN_PAGE_LIVES);
}
