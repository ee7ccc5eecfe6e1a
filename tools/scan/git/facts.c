/* SPDX-License-Identifier: MIT */
/*
 * From a blob to strings.
 */
#include "tools/scan/git/facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Digits of a commit, as many as `git log` abbreviates those of Linux to. */
enum { SHORT_CHARS = 12 };

/* In the author's own time zone. */
static void write_date(const struct git_commit *commit, char *out_text, size_t size)
{
	time_t shown = (time_t)(commit->seconds + (int64_t)commit->zone_minutes * 60);
	int32_t zone = commit->zone_minutes < 0 ? -commit->zone_minutes : commit->zone_minutes;
	struct tm parts;
	char text[24] = "";

	if (gmtime_r(&shown, &parts) == NULL ||
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts) == 0) {
		text[0] = '\0';
	}
	snprintf(out_text, size, "%s%c%02d:%02d", text, commit->zone_minutes < 0 ? '-' : '+',
		(int)(zone / 60 % 100), (int)(zone % 60));
}

static void set_commit(
	struct git_facts *facts, const struct git_blobs *blobs, const struct git_commit *commit)
{
	const char *author = blobs->authors.items[commit->author].bytes;
	size_t length = strcspn(author, "\n");

	git_id_write(blobs, commit->id, facts->commit);
	snprintf(facts->author, sizeof(facts->author), "%.*s", (int)length, author);
	snprintf(facts->email, sizeof(facts->email), "%s",
		author[length] == '\n' ? author + length + 1 : "");
	write_date(commit, facts->date, sizeof(facts->date));
	facts->facts.commit = facts->commit;
	facts->facts.author = facts->author;
	facts->facts.email = facts->email;
	facts->facts.date = facts->date;
}

int git_facts_set(
	struct git_facts *facts, const struct git_blobs *blobs, const struct git_blob *blob)
{
	const struct git_name *path = &blobs->paths.items[blob->path];
	size_t wanted = (size_t)path->length + SHORT_CHARS + 2;

	if (wanted > facts->name_capacity) {
		char *grown = realloc(facts->name, 2 * wanted);

		if (grown == NULL) {
			return -ENOMEM;
		}
		facts->name = grown;
		facts->name_capacity = 2 * wanted;
	}
	facts->facts = (struct source_facts){.name = facts->name, .blob = facts->blob};
	git_id_write(blobs, blob->id, facts->blob);
	facts->name[0] = '\0';
	if (blob->commit != GIT_NO_COMMIT && blob->commit < blobs->commit_count) {
		set_commit(facts, blobs, &blobs->commits[blob->commit]);
		snprintf(facts->name, SHORT_CHARS + 2, "%.*s:", SHORT_CHARS, facts->commit);
	}
	strcat(facts->name, path->bytes);
	return 0;
}

void git_facts_fini(struct git_facts *facts)
{
	free(facts->name);
	facts->name = NULL;
}
