/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What people write behind --format: the part of Go's templates that docker's users use.
 *
 * Text is copied; `{{ }}` holds an action: fields (`.A.B`), `$variables`, "strings", numbers,
 * (parentheses), pipes, the functions json index len join upper lower title truncate print println
 * printf eq ne lt le gt ge and or not, and the blocks if, with, range. `{{-` and `-}}` eat blanks.
 *
 * Pure: the text and a JSON value in, text out. A first pass reads everything, so that a template
 * with a mistake prints nothing; the second one prints.
 */
struct buf;
struct error;
struct jtext;

/*
 * -ERR_INVALID: the text is no template; any other failure: it does not fit the value. The message
 * is what docker prints behind "template parsing error: ".
 */
int template_eval(const char *text, const struct jtext *value, struct buf *out, struct error *err);

/* The escapes \t and \n, which docker's tables know and its inspect does not; in place. */
void template_unescape(char *text);
