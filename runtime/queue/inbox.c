/* SPDX-License-Identifier: MIT */
/*
 * A stack of links, pushed one by one and taken whole.
 */
#include "runtime/queue/inbox.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

void pin_inbox_push(struct pin_inbox *inbox, struct pin_link *link)
{
	uint64_t newest = pin_load_relaxed_u64(&inbox->newest);

	do {
		PIN_DCHECK((uintptr_t)link != newest); /* it is there already */
		link->next = (struct pin_link *)(uintptr_t)newest;
	} while (!pin_cas_seq_cst_u64(&inbox->newest, &newest, (uintptr_t)link)); /* [INBOX-1] */
}

void pin_inbox_take(struct pin_inbox *inbox, struct pin_list *out_list)
{
	struct pin_link *link;
	struct pin_link *older = NULL;

	if (pin_inbox_is_empty(inbox)) {
		return;
	}
	link = (struct pin_link *)(uintptr_t)pin_exchange_seq_cst_u64(
		&inbox->newest, 0); /* [INBOX-1] */
	while (link != NULL) {
		struct pin_link *next = link->next;

		link->next = older;
		older = link;
		link = next;
	}
	while (older != NULL) {
		struct pin_link *next = older->next;

		pin_list_push(out_list, older);
		older = next;
	}
}
