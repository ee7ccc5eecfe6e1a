/* SPDX-License-Identifier: MIT */
/*
 * Goal: the cache of compiled rules gives back an entry as it was written, and
 * nothing that is damaged, cut short, renamed, of another key, or in a folder
 * or file that others may write; it stays within its size.
 *
 * Method: each kind of damage to a good entry; after each, a write makes the
 * entry good again. Proves EX-53.
 */
#include "tests/support/expect.h"
#include "tests/support/scratch.h"
#include "tools/scan/cache_folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if !defined(HAVE_OPENSSL)
int main(void)
{
	printf("skipped: built without OpenSSL\n");
	return 77;
}
#else

enum { ENTRY_BYTES = 5000 };

static uint8_t entry[ENTRY_BYTES];
static struct cache_name name;
static char entry_path[256];

static void make_name(const char *text, struct cache_name *out_name)
{
	struct cache_naming naming;

	cache_naming_begin(&naming);
	cache_naming_add(&naming, text, strlen(text));
	expect_ready("name", cache_naming_end(&naming, out_name));
}

static bool is_there(void)
{
	size_t length = 0;
	uint8_t *bytes = cache_folder_read(&name, &length);
	bool is_same =
		bytes != NULL && length == ENTRY_BYTES && memcmp(bytes, entry, ENTRY_BYTES) == 0;

	expect_true("an entry is right or not there", bytes == NULL || is_same);
	free(bytes);
	return is_same;
}

/* The path of the only entry. */
static void find_entry(void)
{
	DIR *folder = opendir("cache/pinion");
	const struct dirent *item;

	expect_ready("folder", folder != NULL);
	while ((item = readdir(folder)) != NULL) {
		if (strstr(item->d_name, ".rules") != NULL) {
			snprintf(entry_path, sizeof(entry_path), "cache/pinion/%.200s",
				item->d_name);
		}
	}
	closedir(folder);
}

/* It is refused as it is, and whole again after a write. */
static void expect_refused(const char *what)
{
	expect_true(what, !is_there());
	cache_folder_write(&name, entry, ENTRY_BYTES);
	expect_true("it is written anew", is_there());
}

static void flip(const char *path, long offset)
{
	FILE *file = fopen(path, "r+");
	int byte;

	expect_ready(path, file != NULL && fseek(file, offset, SEEK_SET) == 0);
	byte = fgetc(file);
	expect_ready(path, fseek(file, offset, SEEK_SET) == 0);
	expect_ready(path, fputc(byte ^ 1, file) != EOF && fclose(file) == 0);
}

static void check_damage(void)
{
	struct cache_name other;
	struct stat status;

	flip(entry_path, 0);
	expect_refused("a wrong mark");
	flip(entry_path, 8 + 100);
	expect_refused("a flipped bit");
	flip(entry_path, 8 + ENTRY_BYTES);
	expect_refused("a wrong digest");
	expect_ready("truncate", truncate(entry_path, 2000) == 0);
	expect_refused("cut short");
	expect_ready("truncate", truncate(entry_path, 0) == 0);
	expect_refused("empty");
	expect_ready("truncate", truncate(entry_path, 100 << 20) == 0);
	expect_refused("too large");
	flip("cache/pinion/key", 5);
	expect_refused("another key");

	/* The same bytes under another name. */
	make_name("other", &other);
	expect_ready("rename", rename(entry_path, "cache/pinion/moved") == 0);
	cache_folder_write(&other, entry, ENTRY_BYTES);
	find_entry();
	expect_ready("rename", rename("cache/pinion/moved", entry_path) == 0);
	name = other;
	expect_refused("renamed");
	expect_number(
		"mode of an entry", 0100600, stat(entry_path, &status) == 0 ? status.st_mode : 0);
}

static void check_owners(void)
{
	expect_ready("chmod", chmod(entry_path, 0640) == 0);
	expect_refused("an entry that others may read");
	expect_ready("rename", rename(entry_path, "cache/elsewhere") == 0);
	expect_ready("symlink", symlink("../elsewhere", entry_path) == 0);
	expect_refused("a link in place of an entry");
	if (geteuid() == 0) {
		expect_ready("chown", chown(entry_path, 12345, (gid_t)-1) == 0);
		expect_refused("another user's entry");
		expect_ready("chown", chown("cache/pinion", 12345, (gid_t)-1) == 0);
		expect_true("another user's folder", !is_there());
		expect_ready("chown", chown("cache/pinion", 0, (gid_t)-1) == 0);
		expect_true("one's own again", is_there());
	}
	expect_ready("chmod", chmod("cache/pinion", 0770) == 0);
	expect_true("a folder that others may write", !is_there());
	expect_ready("chmod", chmod("cache/pinion", 0700) == 0);
	expect_true("nobody else's again", is_there());
	expect_ready("rename", rename("cache/pinion", "cache/real") == 0);
	expect_ready("symlink", symlink("real", "cache/pinion") == 0);
	expect_true("a link in place of the folder", !is_there());
	expect_ready(
		"back", unlink("cache/pinion") == 0 && rename("cache/real", "cache/pinion") == 0);
	expect_true("the folder again", is_there());
}

/* Files of holes: large, and of no room. */
static void make_old(const char *path, off_t bytes, time_t age)
{
	FILE *file = fopen(path, "w");
	struct timespec times[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};

	expect_ready(path, file != NULL && fclose(file) == 0);
	expect_ready(path, truncate(path, bytes) == 0);
	expect_ready(path, utimensat(AT_FDCWD, path, times, 0) == 0);
}

static void check_size(void)
{
	make_old("cache/pinion/a.rules", 200 << 20, 100);
	make_old("cache/pinion/b.rules", 200 << 20, 300);
	make_old("cache/pinion/c.new", 10, 7200);
	make_old("cache/pinion/d.new", 10, 10);
	make_old("cache/pinion/notes.txt", 10, 7200);
	cache_folder_write(&name, entry, ENTRY_BYTES);
	expect_true("the newest stays", is_there());
	expect_true("the next one stays", access("cache/pinion/a.rules", F_OK) == 0);
	expect_true("the oldest goes", access("cache/pinion/b.rules", F_OK) != 0);
	expect_true("a left-over goes", access("cache/pinion/c.new", F_OK) != 0);
	expect_true("a write under way stays", access("cache/pinion/d.new", F_OK) == 0);
	expect_true("other files stay", access("cache/pinion/notes.txt", F_OK) == 0);
}

int main(void)
{
	char cache[300];

	scratch_enter("cache_keeps");
	snprintf(cache, sizeof(cache), "%s/cache", scratch_path);
	expect_ready("setenv", setenv("XDG_CACHE_HOME", cache, 1) == 0);
	for (size_t i = 0; i < ENTRY_BYTES; i++) {
		entry[i] = (uint8_t)(i * 7);
	}
	make_name("entry", &name);
	expect_true("nothing at first", !is_there());
	cache_folder_write(&name, entry, ENTRY_BYTES);
	expect_true("as it was written", is_there());
	find_entry();
	check_damage();
	check_owners();
	check_size();
	expect_ready("setenv",
		setenv("XDG_CACHE_HOME", "relative", 1) == 0 && setenv("HOME", cache, 1) == 0);
	expect_true("not below a relative path", !is_there());
	cache_folder_write(&name, entry, ENTRY_BYTES);
	expect_true("below HOME", access("cache/.cache/pinion/key", F_OK) == 0 && is_there());
	scratch_leave();
	return expect_status();
}
#endif
