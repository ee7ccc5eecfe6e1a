/* SPDX-License-Identifier: MIT */
/*
 * A batch of files, put in the order of their places.
 */
#include "runtime/scan/extent_order.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/host/long_path.h"

#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Extents whose address is none, or not that of the device's bytes. */
enum {
	ADDRESSLESS = FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_DATA_INLINE |
		FIEMAP_EXTENT_NOT_ALIGNED,
};

/* Leaves the place as it is where the file has no address, or it is refused. */
static void find_extent(int fd, struct pin_extent_place *place)
{
	union {
		struct fiemap map;
		char room[sizeof(struct fiemap) + sizeof(struct fiemap_extent)];
	} request;
	const struct fiemap_extent *first = request.map.fm_extents;

	memset(&request, 0, sizeof(request));
	request.map.fm_length = FIEMAP_MAX_OFFSET;
	request.map.fm_extent_count = 1;
	if (ioctl(fd, FS_IOC_FIEMAP, &request.map) == 0 && request.map.fm_mapped_extents > 0 &&
		(first->fe_flags & ADDRESSLESS) == 0) {
		place->has_extent = true;
		place->at = first->fe_physical;
	}
}

/* All zero where it cannot be opened, which the scan will report. */
static struct pin_extent_place find_place(const struct pin_extent_file *file, const char *path)
{
	const struct pin_scan_root *root = file->root;
	int flags = pin_file_open_flags(root == NULL);
	int fd = root == NULL
		? pin_open_long(path, flags)
		: pin_beneath_open(root->options.directory_fd, path + root->names_start, flags);
	struct pin_extent_place place = {.at = 0};
	struct stat status;

	if (fd < 0) {
		return place;
	}
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
		place.device = status.st_dev;
		place.at = status.st_ino;
		find_extent(fd, &place);
	}
	close(fd);
	return place;
}

static int compare_numbers(uint64_t left, uint64_t right)
{
	return left < right ? -1 : left > right;
}

static int compare_files(const void *left, const void *right)
{
	const struct pin_extent_file *a = left;
	const struct pin_extent_file *b = right;
	int order = compare_numbers(a->place.device, b->place.device);

	order = order != 0 ? order : compare_numbers(a->place.has_extent, b->place.has_extent);
	order = order != 0 ? order : compare_numbers(a->place.at, b->place.at);
	return order != 0 ? order : compare_numbers(a->index, b->index);
}

int pin_extent_batch_send(struct pin_extent_batch *batch, struct pinion_scan *scan)
{
	int rc = 0;

	if (batch->file_count == 0) {
		return 0;
	}
	if (!pin_scan_is_cancelled(scan)) {
		for (uint32_t i = 0; i < batch->file_count; i++) {
			struct pin_extent_file *file = &batch->files[i];

			if (pin_scan_is_cancelled(scan)) {
				break;
			}
			file->place = find_place(file, batch->paths + file->path);
		}
		qsort(batch->files, batch->file_count, sizeof(*batch->files), compare_files);
	}
	for (uint32_t i = 0; i < batch->file_count; i++) {
		const struct pin_extent_file *file = &batch->files[i];
		int error = pin_scan_add(scan, batch->paths + file->path, file->path_bytes,
			file->root, file->origin);

		/* A failure is reported; the caller learns of a cancel. */
		rc = rc == 0 || error == -ECANCELED ? error : rc;
		if (file->root != NULL) {
			pin_scan_release_root(scan, file->root, 1);
		}
	}
	batch->file_count = 0;
	batch->path_bytes = 0;
	return rc;
}

/* Room for one more file with a path of this size. */
static int make_room(struct pin_extent_batch *batch, const struct pin_host *host, size_t path_bytes)
{
	size_t wanted = batch->path_bytes + path_bytes;
	char *paths;

	if (batch->files == NULL) {
		batch->files = pin_heap_allocate(
			host, PIN_HEAP_ALIGN, PIN_EXTENT_FILES_MAX, sizeof(*batch->files));
	}
	if (batch->files == NULL) {
		return -ENOMEM;
	}
	if (wanted <= batch->path_capacity) {
		return 0;
	}
	wanted = wanted < PIN_EXTENT_PATH_BYTES_MAX ? PIN_EXTENT_PATH_BYTES_MAX : wanted;
	paths = pin_heap_allocate(host, PIN_HEAP_ALIGN, 1, wanted);
	if (paths == NULL) {
		return -ENOMEM;
	}
	if (batch->paths != NULL) {
		memcpy(paths, batch->paths, batch->path_bytes);
		pin_heap_release(host, batch->paths, PIN_HEAP_ALIGN, 1, batch->path_capacity);
	}
	batch->paths = paths;
	batch->path_capacity = wanted;
	return 0;
}

int pin_extent_batch_take(struct pin_extent_batch *batch, struct pinion_scan *scan,
	const char *path, size_t path_bytes, struct pin_scan_root *root,
	enum pin_slot_origin origin)
{
	struct pin_extent_file *file;

	if (make_room(batch, scan->host, path_bytes + 1) != 0) {
		return pin_scan_add(scan, path, path_bytes, root, origin);
	}
	PIN_CHECK(batch->file_count < PIN_EXTENT_FILES_MAX);
	file = &batch->files[batch->file_count];
	*file = (struct pin_extent_file){
		.root = root,
		.path = batch->path_bytes,
		.path_bytes = path_bytes,
		.index = batch->file_count,
		.origin = origin,
	};
	memcpy(batch->paths + batch->path_bytes, path, path_bytes + 1);
	batch->path_bytes += path_bytes + 1;
	batch->file_count++;
	if (root != NULL) {
		uint32_t before = pin_fetch_add_acq_rel_u32(&root->users, 1);

		PIN_DCHECK(before > 0); /* the walk's own */
	}
	return batch->file_count == PIN_EXTENT_FILES_MAX ||
			batch->path_bytes >= PIN_EXTENT_PATH_BYTES_MAX
		? pin_extent_batch_send(batch, scan)
		: 0;
}

void pin_extent_batch_fini(struct pin_extent_batch *batch, const struct pin_host *host)
{
	PIN_DCHECK(batch->file_count == 0);
	if (batch->files != NULL) {
		pin_heap_release(host, batch->files, PIN_HEAP_ALIGN, PIN_EXTENT_FILES_MAX,
			sizeof(*batch->files));
	}
	if (batch->paths != NULL) {
		pin_heap_release(host, batch->paths, PIN_HEAP_ALIGN, 1, batch->path_capacity);
	}
}
