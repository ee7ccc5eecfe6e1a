/* SPDX-License-Identifier: MIT */
/*
 * Entries as files: a mark, the bytes, the digest.
 */
#include "tools/scan/cache_folder.h"

#if defined(HAVE_OPENSSL)

#include "tools/report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	KEY_BYTES = 32,
	DIGEST_BYTES = 32,
	FILE_NAME_BYTES = 2 * CACHE_NAME_BYTES + 16,
	/* A file that was being written is left over after so long. */
	LEFT_OVER_SECONDS = 3600,
	FOLDER_FILES_MAX = 4096,
};

static const char entry_suffix[] = ".rules";
static const char new_suffix[] = ".new";
static const char key_name[] = "key";
static const uint8_t entry_mark[8] = "pinrul1";

/* ---- the folder ---- */

/* Of this user, without access for others. */
static bool is_own(const struct stat *status, mode_t type)
{
	return (status->st_mode & S_IFMT) == type && status->st_uid == geteuid() &&
		(status->st_mode & 077) == 0;
}

static int open_home(void)
{
	const char *cache = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	int home_fd;
	int fd;

	if (cache != NULL && cache[0] == '/') {
		(void)mkdir(cache, 0700);
		return open(cache, O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	if (home == NULL || home[0] != '/') {
		return -1;
	}
	home_fd = open(home, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (home_fd < 0) {
		return -1;
	}
	(void)mkdirat(home_fd, ".cache", 0700);
	fd = openat(home_fd, ".cache", O_PATH | O_DIRECTORY | O_CLOEXEC);
	close(home_fd);
	return fd;
}

/* -1: there is none. */
static int open_folder(void)
{
	struct stat status;
	int home_fd;
	int fd;

	/* Another user chose the environment of such a program. */
	if (getauxval(AT_SECURE) != 0) {
		return -1;
	}
	home_fd = open_home();
	if (home_fd < 0) {
		report_debug("no cache: neither XDG_CACHE_HOME nor HOME has a folder for it");
		return -1;
	}
	(void)mkdirat(home_fd, "pinion", 0700);
	fd = openat(home_fd, "pinion", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	close(home_fd);
	if (fd >= 0 && fstat(fd, &status) == 0 && is_own(&status, S_IFDIR)) {
		return fd;
	}
	report_debug("no cache: pinion in it is not a folder of this user's own, of mode 0700");
	if (fd >= 0) {
		close(fd);
	}
	return -1;
}

/* ---- files ---- */

static bool read_all(int fd, uint8_t *bytes, size_t length)
{
	while (length > 0) {
		ssize_t count = read(fd, bytes, length);

		if (count <= 0 && !(count < 0 && errno == EINTR)) {
			return false;
		}
		if (count > 0) {
			bytes += count;
			length -= (size_t)count;
		}
	}
	return true;
}

static bool write_all(int fd, const uint8_t *bytes, size_t length)
{
	while (length > 0) {
		ssize_t count = write(fd, bytes, length);

		if (count < 0 && errno != EINTR) {
			return false;
		}
		if (count > 0) {
			bytes += count;
			length -= (size_t)count;
		}
	}
	return true;
}

/* An own file of that length, or of any up to CACHE_ENTRY_BYTES_MAX. -1: no. */
static int open_own(int folder, const char *name, size_t *length)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;

	if (fd < 0) {
		return -1;
	}
	if (fstat(fd, &status) == 0 && is_own(&status, S_IFREG) &&
		(uint64_t)status.st_size <= CACHE_ENTRY_BYTES_MAX &&
		(*length == 0 || (uint64_t)status.st_size == *length)) {
		*length = (size_t)status.st_size;
		return fd;
	}
	report_debug("cache: %s is not an own file of mode 0600, or of a wrong length", name);
	close(fd);
	return -1;
}

static bool read_key(int folder, uint8_t key[KEY_BYTES])
{
	size_t length = KEY_BYTES;
	int fd = open_own(folder, key_name, &length);
	bool is_read = fd >= 0 && read_all(fd, key, KEY_BYTES);

	if (fd >= 0) {
		close(fd);
	}
	return is_read;
}

static void new_name(const char *name, char out_name[FILE_NAME_BYTES])
{
	snprintf(out_name, FILE_NAME_BYTES, "%.8s-%ld%s", name, (long)getpid(), new_suffix);
}

/* Makes a file that is there whole or not at all. */
static bool make_file(int folder, const char *name, const uint8_t *const parts[3],
	const size_t lengths[3], bool replaces)
{
	char temporary[FILE_NAME_BYTES];
	bool is_made;
	int fd;

	new_name(name, temporary);
	fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		return false;
	}
	is_made = write_all(fd, parts[0], lengths[0]) && write_all(fd, parts[1], lengths[1]) &&
		write_all(fd, parts[2], lengths[2]);
	is_made = close(fd) == 0 && is_made;
	if (is_made && replaces) {
		is_made = renameat(folder, temporary, folder, name) == 0;
	} else if (is_made) {
		is_made = linkat(folder, temporary, folder, name, 0) == 0;
	}
	if (!is_made || !replaces) {
		(void)unlinkat(folder, temporary, 0);
	}
	return is_made;
}

/* A key that cannot be read, as another user's, makes the cache useless. */
static bool need_key(int folder, uint8_t key[KEY_BYTES])
{
	if (read_key(folder, key)) {
		return true;
	}
	if (faccessat(folder, key_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT) {
		report_debug("no cache: its key cannot be used; remove the folder");
		return false;
	}
	if (getrandom(key, KEY_BYTES, 0) != KEY_BYTES) {
		return false;
	}
	(void)make_file(folder, key_name, (const uint8_t *const[3]){key, key, key},
		(const size_t[3]){KEY_BYTES, 0, 0}, false);
	/* Another process may have been first. */
	return read_key(folder, key);
}

/* ---- names and digests ---- */

void cache_naming_begin(struct cache_naming *naming)
{
	EVP_MD_CTX *state = EVP_MD_CTX_new();

	if (state != NULL && EVP_DigestInit_ex(state, EVP_sha256(), NULL) != 1) {
		EVP_MD_CTX_free(state);
		state = NULL;
	}
	naming->state = state;
}

void cache_naming_add(struct cache_naming *naming, const void *bytes, size_t length)
{
	uint64_t size = length;

	if (naming->state != NULL &&
		(EVP_DigestUpdate(naming->state, &size, sizeof(size)) != 1 ||
			EVP_DigestUpdate(naming->state, bytes, length) != 1)) {
		EVP_MD_CTX_free(naming->state);
		naming->state = NULL;
	}
}

bool cache_naming_end(struct cache_naming *naming, struct cache_name *out_name)
{
	bool is_named = naming->state != NULL &&
		EVP_DigestFinal_ex(naming->state, out_name->bytes, NULL) == 1;

	EVP_MD_CTX_free(naming->state);
	naming->state = NULL;
	return is_named;
}

/*
 * A file's bytes in memory: the name, then all of the file, so that name, mark
 * and entry are digested at once.
 */
struct image {
	uint8_t *bytes;
	size_t file_bytes;
};

static uint8_t *file_of(const struct image *image)
{
	return image->bytes + CACHE_NAME_BYTES;
}

static bool image_init(struct image *image, const struct cache_name *name, size_t file_bytes)
{
	image->file_bytes = file_bytes;
	image->bytes = malloc(CACHE_NAME_BYTES + file_bytes);
	if (image->bytes != NULL) {
		memcpy(image->bytes, name->bytes, CACHE_NAME_BYTES);
	}
	return image->bytes != NULL;
}

static bool digest_image(
	const uint8_t key[KEY_BYTES], const struct image *image, uint8_t out_digest[DIGEST_BYTES])
{
	unsigned length = 0;

	return HMAC(EVP_sha256(), key, KEY_BYTES, image->bytes,
		       CACHE_NAME_BYTES + image->file_bytes - DIGEST_BYTES, out_digest,
		       &length) != NULL &&
		length == DIGEST_BYTES;
}

static bool is_genuine(const uint8_t key[KEY_BYTES], const struct image *image)
{
	uint8_t digest[DIGEST_BYTES];

	return image->file_bytes >= sizeof(entry_mark) + DIGEST_BYTES &&
		memcmp(file_of(image), entry_mark, sizeof(entry_mark)) == 0 &&
		digest_image(key, image, digest) &&
		CRYPTO_memcmp(digest, file_of(image) + image->file_bytes - DIGEST_BYTES,
			DIGEST_BYTES) == 0;
}

static void file_name(const struct cache_name *name, char out_name[FILE_NAME_BYTES])
{
	for (int i = 0; i < CACHE_NAME_BYTES; i++) {
		snprintf(out_name + 2 * i, 3, "%02x", name->bytes[i]);
	}
	strcpy(out_name + 2 * CACHE_NAME_BYTES, entry_suffix);
}

/* ---- reading ---- */

/* Later than others, it is removed later than others. */
static void touch(int fd)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};

	(void)futimens(fd, times);
}

static bool read_image(int folder, const struct cache_name *name, struct image *image)
{
	char path[FILE_NAME_BYTES];
	size_t length = 0;
	bool is_read;
	int fd;

	file_name(name, path);
	fd = open_own(folder, path, &length);
	if (fd < 0) {
		return false;
	}
	is_read = image_init(image, name, length) && read_all(fd, file_of(image), length);
	if (is_read) {
		touch(fd);
	}
	close(fd);
	return is_read;
}

uint8_t *cache_folder_read(const struct cache_name *name, size_t *out_length)
{
	struct image image = {0};
	uint8_t key[KEY_BYTES];
	uint8_t *entry = NULL;
	int folder = open_folder();

	if (folder < 0) {
		return NULL;
	}
	if (read_image(folder, name, &image)) {
		if (read_key(folder, key) && is_genuine(key, &image)) {
			*out_length = image.file_bytes - sizeof(entry_mark) - DIGEST_BYTES;
			memmove(image.bytes, file_of(&image) + sizeof(entry_mark), *out_length);
			entry = image.bytes;
			image.bytes = NULL;
		} else {
			report_debug("cache: an entry is damaged or not this folder's; ignored");
		}
	}
	OPENSSL_cleanse(key, sizeof(key));
	free(image.bytes);
	close(folder);
	return entry;
}

/* ---- writing ---- */

struct old_file {
	struct timespec time;
	uint64_t bytes;
	char name[FILE_NAME_BYTES];
};

static int compare_age(const void *left, const void *right)
{
	const struct timespec *a = &((const struct old_file *)left)->time;
	const struct timespec *b = &((const struct old_file *)right)->time;

	if (a->tv_sec != b->tv_sec) {
		return a->tv_sec < b->tv_sec ? -1 : 1;
	}
	return a->tv_nsec < b->tv_nsec ? -1 : a->tv_nsec > b->tv_nsec;
}

static bool ends_in(const char *name, const char *suffix)
{
	size_t length = strlen(name);
	size_t size = strlen(suffix);

	return length >= size && strcmp(name + length - size, suffix) == 0;
}

/* Entries, and files left over from a write that was cut off. */
static bool is_removable(const char *name, const struct stat *status, bool *out_is_left_over)
{
	*out_is_left_over = ends_in(name, new_suffix) &&
		time(NULL) - status->st_mtim.tv_sec > LEFT_OVER_SECONDS;
	return S_ISREG(status->st_mode) && strlen(name) < FILE_NAME_BYTES &&
		(*out_is_left_over || ends_in(name, entry_suffix));
}

/* Returns the number of entries, oldest first. */
static size_t list_files(DIR *stream, struct old_file *files, uint64_t *out_bytes)
{
	const struct dirent *entry;
	size_t count = 0;

	*out_bytes = 0;
	while (count < FOLDER_FILES_MAX && (entry = readdir(stream)) != NULL) {
		struct stat status;
		bool is_left_over;

		if (fstatat(dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
			!is_removable(entry->d_name, &status, &is_left_over)) {
			continue;
		}
		if (is_left_over) {
			(void)unlinkat(dirfd(stream), entry->d_name, 0);
			continue;
		}
		files[count].time = status.st_mtim;
		files[count].bytes = (uint64_t)status.st_size;
		/* As is_removable() has checked, it fits. */
		memcpy(files[count].name, entry->d_name, strlen(entry->d_name) + 1);
		*out_bytes += files[count].bytes;
		count++;
	}
	qsort(files, count, sizeof(*files), compare_age);
	return count;
}

/* Removes the oldest entries, until there is room for that many bytes. */
static void make_room(int folder, uint64_t bytes)
{
	struct old_file *files = calloc(FOLDER_FILES_MAX, sizeof(*files));
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
	uint64_t taken;
	size_t count;

	if (files != NULL && stream != NULL) {
		count = list_files(stream, files, &taken);
		for (size_t i = 0; i < count && taken + bytes > CACHE_FOLDER_BYTES_MAX; i++) {
			(void)unlinkat(folder, files[i].name, 0);
			taken -= files[i].bytes;
		}
	}
	if (stream != NULL) {
		closedir(stream);
	} else if (fd >= 0) {
		close(fd);
	}
	free(files);
}

static void write_entry(int folder, const struct cache_name *name, const uint8_t *bytes,
	size_t length, const uint8_t key[KEY_BYTES])
{
	struct image image;
	char path[FILE_NAME_BYTES];
	uint8_t digest[DIGEST_BYTES];
	const uint8_t *const parts[3] = {entry_mark, bytes, digest};
	const size_t lengths[3] = {sizeof(entry_mark), length, DIGEST_BYTES};

	if (!image_init(&image, name, sizeof(entry_mark) + length + DIGEST_BYTES)) {
		return;
	}
	memcpy(file_of(&image), entry_mark, sizeof(entry_mark));
	memcpy(file_of(&image) + sizeof(entry_mark), bytes, length);
	file_name(name, path);
	make_room(folder, image.file_bytes);
	if (!digest_image(key, &image, digest) || !make_file(folder, path, parts, lengths, true)) {
		report_debug("cache: an entry could not be written");
	}
	free(image.bytes);
}

void cache_folder_write(const struct cache_name *name, const uint8_t *bytes, size_t length)
{
	uint8_t key[KEY_BYTES];
	int folder;

	if (length > CACHE_ENTRY_BYTES_MAX - sizeof(entry_mark) - DIGEST_BYTES) {
		return;
	}
	folder = open_folder();
	if (folder < 0) {
		return;
	}
	if (need_key(folder, key)) {
		write_entry(folder, name, bytes, length, key);
		OPENSSL_cleanse(key, sizeof(key));
	}
	close(folder);
}

#else

void cache_naming_begin(struct cache_naming *naming)
{
	naming->state = NULL;
}

void cache_naming_add(struct cache_naming *naming, const void *bytes, size_t length)
{
	(void)naming;
	(void)bytes;
	(void)length;
}

bool cache_naming_end(struct cache_naming *naming, struct cache_name *out_name)
{
	(void)naming;
	(void)out_name;
	return false;
}

uint8_t *cache_folder_read(const struct cache_name *name, size_t *out_length)
{
	(void)name;
	(void)out_length;
	return NULL;
}

void cache_folder_write(const struct cache_name *name, const uint8_t *bytes, size_t length)
{
	(void)name;
	(void)bytes;
	(void)length;
}

#endif
