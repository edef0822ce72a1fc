/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A place in a text for people: both count from 1, columns count characters (code points). */
struct text_place {
    unsigned line, column;
};
