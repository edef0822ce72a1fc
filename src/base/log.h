/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The log of a program, on standard error: text for people, or one JSON object a line. Only the
 * programs' own folders log above debug level; everything below returns a struct error instead.
 */
#include <stdbool.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Set once by main; CLAWDEN_LOG=json and CLAWDEN_DEBUG=1 are read here. */
void log_init(const char *program);
void log_printf(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_debug(...) log_printf(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)  log_printf(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  log_printf(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_printf(LOG_ERROR, __VA_ARGS__)
