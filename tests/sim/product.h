/* SPDX-License-Identifier: MIT */
/*
 * What the product's sources, as the simulator compiles them, add to what their
 * own headers tell.
 */
#ifndef SIM_PRODUCT_H
#define SIM_PRODUCT_H

/* Once, before any run. */
void product_register(void);

#endif
