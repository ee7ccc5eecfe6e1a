/* SPDX-License-Identifier: MIT */
/*
 * A walker: opens directories, one at a time, and lists them. What it finds it
 * visits, or puts into a block, for another thread to visit; the names of
 * subdirectories are for walk_tree.h.
 *
 * A walker belongs to the thread that walks, or to a task; a listing goes from
 * one walker to another where a directory is put aside.
 */
#ifndef PIN_SCAN_WALK_LIST_H
#define PIN_SCAN_WALK_LIST_H

#include "runtime/scan/anchor.h"
#include "runtime/scan/walk_path.h"
#include "runtime/scan/walk_tree.h"

/* Some 2000 entries a call; more saves nothing measurable. Models take less. */
#ifndef PIN_WALK_LIST_BYTES
#define PIN_WALK_LIST_BYTES ((uint32_t)64 << 10)
#endif

/* As the kernel writes it. */
struct pin_list_entry {
	uint64_t inode;
	int64_t offset;
	uint16_t record_bytes;
	uint8_t type;
	char name[];
};

/* An open directory, and the part of its list that was read. */
struct pin_listing {
	struct pin_listing *next; /* in a list of those that wait */
	struct pin_directory *directory;
	int fd;
	uint32_t position; /* of the next entry in `list` */
	uint32_t end;
	uint32_t kept_bytes; /* names of subdirectories, moved to the front */
	uint32_t kept_count;
	size_t part_position; /* in the names of a part (walk_part.c) */
	struct pin_ignore_errors errors;
	uint64_t list[PIN_WALK_LIST_BYTES / sizeof(uint64_t)];
};

/*
 * Entries that wait to be visited by another thread: records of some bytes
 * each, in the order found. A record without a name is about its directory.
 */
struct pin_walk_block {
	struct pin_walk_block *next;
	const struct pin_directory *directory; /* of the last record; NULL: it is empty */
	uint32_t used_bytes;
	uint32_t capacity_bytes; /* [const] */
	uint64_t bytes[];
};

/* An entry as it is visited, besides its path. */
struct pin_walk_sight {
	uint32_t kind; /* enum pinion_walk_kind */
	uint32_t mode;
	uint32_t reason; /* enum pinion_walk_reason */
	int32_t error;
};

struct pin_walk_record {
	struct pin_walk_sight sight; /* its kind may be PIN_WALK_DIRECTORY */
	uint32_t name_bytes;
	uint64_t name[]; /* of PIN_WALK_DIRECTORY: a node, of which the block is a user */
};

enum {
	/* The records after it are of that directory. */
	PIN_WALK_DIRECTORY = 0xff,
	/*
	 * Bytes of a record besides its name, where it is the first of its
	 * directory: two records, a node, padding.
	 */
	PIN_WALK_RECORD_BYTES = 2 * sizeof(struct pin_walk_record) + 2 * sizeof(uint64_t),
};

/* A block has room for the longest name that a list can have. */
#define PIN_WALK_BLOCK_BYTES (PIN_WALK_LIST_BYTES + PIN_WALK_RECORD_BYTES)

/* Lists directories, one at a time; one thread at a time uses it. */
struct pin_walker {
	struct pin_walk *walk;
	struct pin_listing *listing;	 /* NULL: none is open */
	struct pin_listing *spare;	 /* not in use; NULL: none */
	struct pin_directory *directory; /* that is listed, or opened */
	struct pin_walk_path path;	 /* of the directory that is listed */
	struct pin_walk_path match;	 /* the same as ignore rules see it */
	struct pin_anchor anchor;	 /* above deep directories */
	/* Where entries are put; NULL: there is no room, if `fills_blocks`. */
	struct pin_walk_block *block;
	bool fills_blocks; /* else it visits them itself */
	bool is_patient;   /* a want of descriptors is no visit */
	int rc;		   /* ends the walk: a visitor's, or -ENOMEM */
};

enum pin_listing_state {
	PIN_LISTING_READ,    /* to the end of the part that was read */
	PIN_LISTING_DONE,    /* to its end, or as far as it can be read */
	PIN_LISTING_FULL,    /* the block has no room; the entry is the next again */
	PIN_LISTING_WANTING, /* of an open: no descriptor, the directory is as it was */
	PIN_LISTING_ENDED,   /* the walker's rc says why the walk ends */
};

/* Whether an entry fits. */
static inline bool pin_walker_has_room(const struct pin_walker *walker, size_t name_bytes)
{
	const struct pin_walk_block *block = walker->block;

	return !walker->fills_blocks ||
		(block != NULL &&
			block->capacity_bytes - block->used_bytes >=
				PIN_WALK_RECORD_BYTES + name_bytes);
}

enum {
	/* For the visits of a directory before those of its entries. */
	PIN_WALK_OPENING_BYTES = (1 + PIN_IGNORE_FILES) * (PIN_WALK_RECORD_BYTES + 24),
	PIN_WALK_BLOCK_BYTES_MIN = PIN_WALK_OPENING_BYTES + PIN_WALK_RECORD_BYTES,
};

/* Whether there is room for what an open may visit. */
static inline bool pin_walker_may_open(const struct pin_walker *walker)
{
	return pin_walker_has_room(walker, PIN_WALK_OPENING_BYTES);
}

/*
 * Opens a directory, of which the caller is a user: READ. DONE: it was visited
 * as an error, and released. Only where pin_walker_may_open().
 */
enum pin_listing_state pin_walker_open(struct pin_walker *walker, struct pin_directory *directory);

/* Goes on with the open directory; before another READ its names are put. */
enum pin_listing_state pin_walker_list(struct pin_walker *walker);

/* The names of subdirectories met since; NULL: none, or no memory: `rc`. */
struct pin_names *pin_walker_take_names(struct pin_walker *walker);

/* Goes on with a listing that another walker has begun; -ENOMEM. */
int pin_walker_resume(struct pin_walker *walker, struct pin_listing *listing);

/* Closes the listing and gives up its directory. */
void pin_walker_close(struct pin_walker *walker);

void pin_walker_fini(struct pin_walker *walker);

/* An entry of the directory being listed; no name: itself. */
struct pin_walk_found {
	const char *name;
	size_t name_bytes;
	struct pin_walk_sight sight;
};

/*
 * Visits an entry of a mode that is known; or, of a directory that is to be
 * entered, sets *out_is_directory. -ENOMEM, or the visitor's.
 */
int pin_walker_look(struct pin_walker *walker, struct pin_walk_found *found, mode_t mode,
	bool *out_is_directory);

/* ---- ignore files: walk_ignore.c ---- */

/* The directory's absolute path as far as it is known, and a slash; -ENOMEM. */
int pin_walker_set_match(struct pin_walker *walker);

/* Reads those of the open directory; -ENOMEM, or the visitor's. */
int pin_walker_read_ignores(struct pin_walker *walker);

/* ---- parts of trees: walk_part.c ---- */

/* Puts the next names of a part into `list`; returns the bytes, 0: the end. */
uint32_t pin_walk_part_read(const struct pin_walk *walk, struct pin_listing *listing);

/* Whether a directory is left to another walk; -ENOMEM. */
int pin_walker_share(
	struct pin_walker *walker, const struct pin_walk_found *found, bool *out_is_shared);

/* ---- for walk_sorted.c, which looks at entries in an order of its own ---- */

/* An entry of the part that was read; the text is there until the next part. */
struct pin_walk_name {
	const char *text;
	mode_t mode;	   /* 0: `error` says why it is not known */
	int error;	   /* negative errno */
	bool is_directory; /* or a link to it, where links are followed */
};

/* Reads the next part of the list: READ. DONE: there is none. */
enum pin_listing_state pin_walker_read(struct pin_walker *walker);

/* The next entry of that part. False: there is none. */
bool pin_walker_next(struct pin_walker *walker, struct pin_walk_name *out_name);

/* Closes the listing; its directory is still the caller's. */
void pin_walker_leave(struct pin_walker *walker);

/*
 * Is about the directory again, `opens`: at the start of its list. Negative
 * errno: it cannot be opened, or there is no memory; the listing is there.
 */
int pin_walker_return(struct pin_walker *walker, struct pin_directory *directory, bool opens);

/* Visits it, or puts it into the block, where there is room. */
int pin_walker_visit(struct pin_walker *walker, const struct pin_walk_found *found);

/* `name` NULL: an error of the directory itself. */
int pin_walker_visit_error(struct pin_walker *walker, const char *name, int error);

/* Visits one path. */
int pin_walk_visit(const struct pin_walk *walk, const struct pin_walk_path *path,
	const struct pin_walk_sight *sight);

#endif
