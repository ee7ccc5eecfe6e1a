/* SPDX-License-Identifier: MIT */
/*
 * Additions of the product's sources, as the simulator compiles them, to their
 * own headers.
 */
#ifndef SIM_PRODUCT_H
#define SIM_PRODUCT_H

/* Once, before any run. */
void product_register(void);

#endif
