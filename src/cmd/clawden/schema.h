/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is made from the table of settings: JSON Schema, manual page, and S1's defaults file. */
void schema_print_json(void);
void schema_print_man(void);
void schema_print_ansible(void);
