/* SPDX-License-Identifier: MIT */
/*
 * A checkpoint log: a file of records that says how far a long run has come. A
 * run that was killed, or whose machine lost its power, goes on from there.
 *
 * The log begins with facts about its run, such as its rules, options and root.
 * A run that resumes a log has to have the same facts. Each record has a
 * checksum. A torn end, as a crash leaves it, is cut off; a damaged record
 * before bytes that were durable is refused, or passed by when the caller asks
 * for it.
 *
 * Workers append records; a thread of the log's own writes them, many at once,
 * and makes them durable at intervals. A crash can cost the work since the last
 * interval, and no more.
 */
#ifndef PINION_CHECKPOINT_H
#define PINION_CHECKPOINT_H

#include <pinion/log.h>
#include <pinion/version.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

PINION_BEGIN_DECLS

struct pinion_checkpoint;

/* What a run has in common with a run that resumes it. */
struct pinion_checkpoint_fact {
	const char *name;
	const char *value;
};

enum {
	/*
	 * Goes on with the log that is there, or makes one if there is none.
	 * Without this flag a file of that name is an error.
	 */
	PINION_CHECKPOINT_RESUME = 1 << 0,
	/* With RESUME: damaged records are passed by, and named in the log. */
	PINION_CHECKPOINT_SALVAGE = 1 << 1,
	/* Only reads a log that is there: it is neither locked nor cut. */
	PINION_CHECKPOINT_READ = 1 << 2,
};

enum {
	/* Types of records are the caller's, 1 to this. */
	PINION_CHECKPOINT_TYPE_MAX = 65535,
	/* Most bytes of a record. */
	PINION_CHECKPOINT_RECORD_MAX = 1 << 30,
	/* Most facts, and bytes of their names and values. */
	PINION_CHECKPOINT_FACTS_MAX = 64,
	PINION_CHECKPOINT_FACT_BYTES_MAX = 1 << 20,
};

/*
 * Shape: size-versioned; pinion_checkpoint_config_init() sets the defaults.
 * Since: 0.1
 */
struct pinion_checkpoint_config {
	uint32_t size;
	uint32_t flags; /* PINION_CHECKPOINT_… */
	/* Copied by pinion_checkpoint_open(). */
	const struct pinion_checkpoint_fact *facts;
	uint32_t fact_count;
	uint32_t reserved; /* 0 */
	/*
	 * Records become durable (fdatasync) when this time has passed since
	 * the last ones, in nanoseconds. Default 1 s.
	 */
	uint64_t sync_ns;
	/*
	 * Or when the work that records stand for (pinion_checkpoint_append)
	 * comes to this number of bytes. Default 1 GiB.
	 */
	uint64_t sync_bytes;
	/* Gets a line for each failure; NULL: none. */
	pinion_log_fn log;
	void *log_arg;
};

PINION_API void pinion_checkpoint_config_init_sized(
	struct pinion_checkpoint_config *config, uint32_t size);
#define pinion_checkpoint_config_init(config) \
	pinion_checkpoint_config_init_sized( \
		(config), (uint32_t)sizeof(struct pinion_checkpoint_config))

/*
 * A record of the log.
 *
 * Owns: `bytes` belong to the log, until the next pinion_checkpoint_next().
 * Since: 0.1
 */
struct pinion_checkpoint_record {
	uint32_t type;
	uint32_t reserved;
	uint64_t sequence; /* of all records in the file, from 0 on */
	const uint8_t *bytes;
	size_t length_bytes;
	uint64_t offset_bytes; /* of `bytes` in the file: pinion_checkpoint_read() */
};

/* Shape: size-versioned. Since: 0.1 */
struct pinion_checkpoint_info {
	uint64_t record_count; /* of callers, that were there when it was opened */
	uint64_t cut_bytes;    /* a torn end that was cut off */
	uint64_t salvaged_bytes;
	uint64_t epoch;		/* how many runs have written it, this one included */
	uint64_t durable_bytes; /* of the file */
	uint32_t is_complete;	/* it was closed as complete, and nothing came after */
	uint32_t digest;	/* CRC32C over the checksums of all records that were there */
};

/*
 * Opens or makes a log. The file is locked as long as it is open (flock), and
 * durable together with its name when this returns.
 *
 * Owns: the caller, until pinion_checkpoint_close().
 * Context: any thread but a worker's; blocks; reads the whole file once.
 * Errors, each with a line to `log`: -EEXIST: the file is there, and RESUME is
 * not set. -ESTALE: it is of a run with other facts; the line has the first
 * that differs, and both values. -EBUSY: another process writes it. -EBADMSG:
 * it is no checkpoint log, or damaged before its durable end; the line has the
 * offset. -ENODATA: with READ: it ends before its first record, as a crash
 * leaves a log that was just made. -EPROTONOSUPPORT: of another version of the
 * format. -EINVAL: a field out of range. -E2BIG: as of other configurations.
 * -ENOMEM; -EAGAIN: no thread; those of open(2), read(2), write(2),
 * fdatasync(2).
 * Since: 0.1
 */
PINION_API int pinion_checkpoint_open(const char *path,
	const struct pinion_checkpoint_config *config, struct pinion_checkpoint **out_checkpoint);

/*
 * Gives the records that were there when it was opened, in their order, each
 * once. Returns 1: a record; 0: there is none any more.
 *
 * Context: one thread at a time; blocks.
 * Errors: -ENOMEM; those of read(2); -EBADMSG: the file has changed meanwhile.
 * Since: 0.1
 */
PINION_API int pinion_checkpoint_next(
	struct pinion_checkpoint *checkpoint, struct pinion_checkpoint_record *out_record);

/*
 * Has pinion_checkpoint_next() begin with the first record again.
 *
 * Context: as pinion_checkpoint_next(). Since: 0.1
 */
PINION_API void pinion_checkpoint_rewind(struct pinion_checkpoint *checkpoint);

/*
 * Reads bytes of a record again.
 *
 * Shape: `offset_bytes` is that of the record, or some bytes further.
 * Context: any thread; blocks for a read of the page cache or of the disk.
 * Errors: -EBADMSG: the file ends before; those of read(2).
 * Since: 0.1
 */
PINION_API int pinion_checkpoint_read(const struct pinion_checkpoint *checkpoint,
	uint64_t offset_bytes, void *bytes, size_t length_bytes);

/*
 * Appends a record of the bytes of all parts. It becomes durable later, by
 * itself, or with pinion_checkpoint_sync().
 *
 * Shape: `work_bytes` is how much work the record stands for: see `sync_bytes`.
 * Context: any thread, workers included. Copies the bytes into memory; waits
 * for the disk only when 64 MiB wait there.
 * Errors: -EINVAL: a type or a length out of range; -EROFS: it was opened with
 * READ. -ENOMEM: this record is left out. Others, as -ENOSPC, -EIO, or -EBUSY,
 * another process has written to the file: no record is taken from then on.
 * Every call returns that error, and the log is whole up to its last durable
 * record.
 * Since: 0.1
 */
PINION_API int pinion_checkpoint_append(struct pinion_checkpoint *checkpoint, uint32_t type,
	const struct iovec *parts, uint32_t part_count, uint64_t work_bytes);

/*
 * Waits until all records appended before are durable.
 *
 * Context: any thread but a worker's; blocks.
 * Errors: as pinion_checkpoint_append().
 * Since: 0.1
 */
PINION_API int pinion_checkpoint_sync(struct pinion_checkpoint *checkpoint);

/*
 * Makes all records durable, and frees the log. `is_complete`: the run has done
 * all its work, which a last record says.
 *
 * Context: any thread but a worker's; blocks. Accepts NULL.
 * Errors: as pinion_checkpoint_append(); it is closed all the same.
 * Since: 0.1
 */
PINION_API int pinion_checkpoint_close(struct pinion_checkpoint *checkpoint, int is_complete);

/* Describes the log. Since: 0.1 */
PINION_API void pinion_checkpoint_get_info(const struct pinion_checkpoint *checkpoint,
	struct pinion_checkpoint_info *out_info, size_t size);

/*
 * The value of a fact of the log, NULL: it has none of that name.
 *
 * Owns: the log. Context: any thread; never blocks. Since: 0.1
 */
PINION_API const char *pinion_checkpoint_fact_value(
	const struct pinion_checkpoint *checkpoint, const char *name);

PINION_END_DECLS

#endif
