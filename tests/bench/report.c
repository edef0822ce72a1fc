/* SPDX-License-Identifier: Apache-2.0 */
/* The same results three times: for people, as Markdown, as JSON. */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_WIDTH = 50, WIDTH = 11, MAX_COLUMNS = 9 };

static const char *const verdict_names[] = {"reached", "missed", "not measured"};

/* ---- rows ---- */

/* Where rows go: padded columns, or Markdown's bars. */
struct page {
    FILE *f;
    bool markdown;
};

/* A NULL-ended row; in text the first column is wide and leans left. */
typedef const char *row[MAX_COLUMNS];

static void print_row(const struct page *p, const row cells)
{
    if (p->markdown)
        (void)fputs("|", p->f);
    for (int i = 0; cells[i]; i++) {
        if (p->markdown)
            (void)fprintf(p->f, " %s |", cells[i]);
        else if (i == 0)
            (void)fprintf(p->f, "%-*s", FIRST_WIDTH, cells[i]);
        else
            (void)fprintf(p->f, " %*s", WIDTH, cells[i]);
    }
    (void)fputs("\n", p->f);
}

static void print_heading(const struct page *p, const char *title, const row columns)
{
    (void)fprintf(p->f, p->markdown ? "\n## %s\n\n" : "\n%s\n", title);
    print_row(p, columns);
    if (!p->markdown)
        return;
    for (int i = 0; columns[i]; i++)
        (void)fputs(i ? "---:|" : "|---|", p->f);
    (void)fputs("\n", p->f);
}

/* A number as text, "-" where it is unknown; it lives for one row. */
static const char *number(bool known, int digits, double value)
{
    static char ring[MAX_COLUMNS * 2][32];
    static unsigned next;
    char *text = ring[next++ % ARRAY_LEN(ring)];

    if (known)
        (void)snprintf(text, sizeof(*ring), "%.*f", digits, value);
    else
        (void)snprintf(text, sizeof(*ring), "-");
    return text;
}

/* ---- tables ---- */

static void print_facts(struct bench *b, const struct page *p)
{
    FILE *f = b->facts ? fopen(b->facts, "re") : NULL;
    char line[512];

    if (p->markdown)
        (void)fputs("# Benchmark\n\n", p->f);
    while (f && fgets(line, sizeof(line), f))
        (void)fprintf(p->f, "%s%s", p->markdown ? "- " : "", line);
    if (f)
        (void)fclose(f);
    (void)fprintf(p->f, "%sload: %s at the start, %s at the end\n", p->markdown ? "- " : "",
                  b->load_start, b->load_end);
}

static void print_case(struct bench *b, const struct page *p, struct bench_case *c)
{
    double p50 = samples_quantile(&c->s, 0.5),
           bare_true = case_median(b, LAUNCH_BARE, PAYLOAD_TRUE);
    double bare = case_median(b, LAUNCH_BARE, c->payload),
           bwrap = case_median(b, LAUNCH_BWRAP, c->payload);
    bool ran = c->s.n > 0;

    print_row(p, (row){c->name, number(true, 0, (double)c->s.n),
                       number(ran, 0, samples_quantile(&c->s, 0.1)), number(ran, 0, p50),
                       number(ran, 0, samples_quantile(&c->s, 0.99)),
                       number(ran && bare_true > 0, 2, ratio(p50, bare_true)),
                       number(ran && bare > 0 && c->launcher != LAUNCH_BARE, 0, p50 - bare),
                       number(ran && bwrap > 0, 2, ratio(p50, bwrap))});
}

static void print_cases(struct bench *b, const struct page *p)
{
    print_heading(p, "Time to run one program to its end, us",
                  (row){"case", "n", "p10", "p50", "p99", "x bare", "over bare", "x bwrap"});
    for (size_t i = 0; i < b->n_cases; i++)
        print_case(b, p, &b->cases[i]);
    (void)fprintf(
        p->f,
        "%sx bare: p50 against bare true; over bare: above the same program run bare; x bwrap: "
        "against bwrap with the same program.\n",
        p->markdown ? "\n" : "");
}

static void print_rates(struct bench *b, const struct page *p)
{
    double bare = rate_find(b, LAUNCH_BARE), bwrap = rate_find(b, LAUNCH_BWRAP);

    print_heading(p, "Programs per second (true), 2 workers",
                  (row){"case", "per second", "of bare", "x bwrap", "from slot %"});
    for (size_t i = 0; i < b->n_rates; i++) {
        const struct rate *r = &b->rates[i];

        print_row(p, (row){launcher_name(r->launcher), number(true, 0, r->per_second),
                           number(bare > 0, 2, ratio(r->per_second, bare)),
                           number(bwrap > 0, 2, ratio(r->per_second, bwrap)),
                           number(r->probes > 0, 0, 100 * ratio(r->from_slot, r->probes))});
    }
}

static void print_memory(struct bench *b, const struct page *p)
{
    const struct memory *m = &b->memory;
    char title[128];

    if (!m->measured)
        return;
    (void)snprintf(title, sizeof(title),
                   "Memory of %u idle boxes, KiB each; made %.0f/s, ended %.0f/s, %u left over",
                   m->boxes, m->made_per_second, m->ended_per_second, m->left_over);
    print_heading(p, title, (row){"what", "kernel's", "MemAvail."});
    print_row(p, (row){"wrapper, box and sleeping t0 together", number(true, 0, m->kernel),
                       number(true, 0, m->available)});
    print_row(p, (row){"a bare sleeping t0 (control)", number(true, 0, m->plain),
                       number(true, 0, m->plain_available)});
    print_row(p, (row){"less the wrapper's own pages (PSS)", "-",
                       number(m->wrapper_pss >= 0, 0, m->available - m->wrapper_pss)});
    print_row(p, (row){"box alone: less wrapper and t0, with init's pages",
                       number(true, 0, memory_box_kib(m)),
                       number(m->wrapper_pss >= 0, 0,
                              m->available - m->wrapper_pss - 2 * m->plain_available)});
    (void)fprintf(p->f, "%sthe first line's kernel memory:", p->markdown ? "\n" : "");
    for (size_t i = 0; i < MEMORY_PARTS; i++)
        (void)fprintf(p->f, "%s %s %.0f", i ? "," : "", memory_part_names[i], m->parts[i]);
    (void)fputs("\n", p->f);
    print_heading(p, "Pages of single processes, KiB", (row){"process", "RSS", "PSS"});
    print_row(p, (row){"the box's init (PID 1)", number(m->init_rss >= 0, 0, m->init_rss),
                       number(m->init_pss >= 0, 0, m->init_pss)});
    print_row(
        p, (row){"clawden-sandbox, waiting", "-", number(m->wrapper_pss >= 0, 0, m->wrapper_pss)});
}

static void print_idle(struct bench *b, const struct page *p)
{
    const struct idle *m = &b->idle;
    char title[128];

    if (!m->measured)
        return;
    (void)snprintf(
        title, sizeof(title),
        "Memory of %u idle live boxes, KiB each; made %.0f/s, ended %.0f/s, %u left over", m->boxes,
        m->made_per_second, m->ended_per_second, m->left_over);
    print_heading(p, title, (row){"what", "kernel's", "MemAvail."});
    print_row(p, (row){"created, not started: its folder", number(true, 0, m->folder), "-"});
    print_row(p, (row){"started", number(true, 0, m->kernel), number(true, 0, m->available)});
    print_row(p, (row){"started, with the pages of init and keeper",
                       number(true, 0, idle_box_kib(m)), number(true, 0, m->available)});
    (void)fprintf(p->f, "%skernel memory of a started one:", p->markdown ? "\n" : "");
    for (size_t i = 0; i < MEMORY_PARTS; i++)
        (void)fprintf(p->f, "%s %s %.0f", i ? "," : "", memory_part_names[i], m->parts[i]);
    (void)fprintf(p->f,
                  "; its init: RSS %s, PSS %s; %u keepers (limits that the kernel does not "
                  "keep), pages of one: %s\n",
                  number(m->init_rss >= 0, 0, m->init_rss),
                  number(m->init_pss >= 0, 0, m->init_pss), m->keepers,
                  number(m->keepers > 0, 0, m->keeper));
}

static void print_scale(struct bench *b, const struct page *p)
{
    if (!b->n_comparisons)
        return;
    print_heading(p, "Set-up against size, p50 in us",
                  (row){"case", "few", "many", "with few", "with many", "ratio"});
    for (size_t i = 0; i < b->n_comparisons; i++) {
        struct comparison *c = &b->comparisons[i];
        double small = samples_quantile(&c->with_small, 0.5),
               large = samples_quantile(&c->with_large, 0.5);
        char name[96];

        (void)snprintf(name, sizeof(name), "%s, %s", c->what, c->dimension);
        print_row(p, (row){name, number(true, 0, (double)c->small),
                           number(true, 0, (double)c->large), number(true, 0, small),
                           number(true, 0, large), number(small > 0, 2, ratio(large, small))});
    }
}

static void print_budgets(struct bench *b, const struct page *p)
{
    (void)fputs(p->markdown ? "\n## Budgets\n\n| budget | limit | | measured |\n|---|---|---|---|\n"
                            : "\nBudgets\n",
                p->f);
    for (size_t i = 0; i < b->n_budgets; i++) {
        const struct budget *g = &b->budgets[i];

        (void)fprintf(p->f, p->markdown ? "| %s | %s | %s | %s |\n" : "%-38s %-31s %-13s %s\n",
                      g->what, g->limit, verdict_names[g->verdict], g->measured);
    }
}

static void print_notes(struct bench *b, const struct page *p)
{
    if (b->n_notes)
        (void)fputs(p->markdown ? "\n## Notes\n\n" : "\nNotes\n", p->f);
    for (size_t i = 0; i < b->n_notes; i++)
        (void)fprintf(p->f, "%s%s\n", p->markdown ? "- " : "", b->notes[i]);
}

static void print_page(struct bench *b, const struct page *p)
{
    print_facts(b, p);
    print_cases(b, p);
    print_rates(b, p);
    print_memory(b, p);
    print_idle(b, p);
    print_scale(b, p);
    print_budgets(b, p);
    print_notes(b, p);
    (void)fflush(p->f);
}

/* ---- JSON ---- */

static void json_string(FILE *f, const char *text, size_t len)
{
    (void)fputc('"', f);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c == '"' || c == '\\')
            (void)fprintf(f, "\\%c", c);
        else if (c < ' ')
            (void)fprintf(f, "\\u%04x", c);
        else
            (void)fputc(c, f);
    }
    (void)fputc('"', f);
}

static const char *comma(size_t i)
{
    return i ? ",\n  " : "\n  ";
}

static void json_facts(struct bench *b, FILE *to)
{
    FILE *f = b->facts ? fopen(b->facts, "re") : NULL;
    char line[512];

    (void)fprintf(to, "{\"facts\": {\"load_start\": \"%s\", \"load_end\": \"%s\"", b->load_start,
                  b->load_end);
    while (f && fgets(line, sizeof(line), f)) {
        size_t key = strcspn(line, ":"), value = key + strspn(line + key, ": ");

        (void)fputs(", ", to);
        json_string(to, line, key);
        (void)fputs(": ", to);
        json_string(to, line + value, strcspn(line + value, "\n"));
    }
    if (f)
        (void)fclose(f);
    (void)fputs("},\n", to);
}

static void json_memory(struct bench *b, FILE *f)
{
    const struct memory *m = &b->memory;
    const struct idle *i = &b->idle;

    (void)fprintf(f,
                  "],\n\"memory_kib\": {\"measured\": %s, \"boxes\": %u, \"box_alone\": %.1f, "
                  "\"kernel\": %.1f, "
                  "\"available\": %.1f, \"plain\": %.1f, \"wrapper_pss\": %.1f, \"init_rss\": "
                  "%.1f, \"init_pss\": %.1f, "
                  "\"made_per_second\": %.1f, \"ended_per_second\": %.1f},\n",
                  m->measured ? "true" : "false", m->boxes, memory_box_kib(m), m->kernel,
                  m->available, m->plain, m->wrapper_pss, m->init_rss, m->init_pss,
                  m->made_per_second, m->ended_per_second);
    (void)fprintf(f,
                  "\"live_kib\": {\"measured\": %s, \"boxes\": %u, \"box\": %.1f, \"folder\": "
                  "%.1f, \"kernel\": %.1f, \"available\": %.1f, \"init_rss\": %.1f, "
                  "\"init_pss\": %.1f, \"made_per_second\": %.1f, \"ended_per_second\": %.1f, "
                  "\"keepers\": %u, \"keeper\": %.1f, \"left_over\": %u},\n",
                  i->measured ? "true" : "false", i->boxes, idle_box_kib(i), i->folder, i->kernel,
                  i->available, i->init_rss, i->init_pss, i->made_per_second, i->ended_per_second,
                  i->keepers, i->keeper, i->left_over);
}

static void json_results(struct bench *b, FILE *f)
{
    (void)fputs("\"cases_usec\": [", f);
    for (size_t i = 0; i < b->n_cases; i++) {
        struct samples *s = &b->cases[i].s;

        (void)fprintf(f,
                      "%s{\"case\": \"%s\", \"n\": %zu, \"p10\": %.1f, \"p50\": %.1f, \"p99\": "
                      "%.1f, \"failures\": %u}",
                      comma(i), b->cases[i].name, s->n, samples_quantile(s, 0.1),
                      samples_quantile(s, 0.5), samples_quantile(s, 0.99), b->cases[i].failures);
    }
    (void)fprintf(f, "],\n\"slots\": {\"probes\": %u, \"from_slot\": %u},\n\"rates\": [",
                  b->slot_probes, b->slot_hits);
    for (size_t i = 0; i < b->n_rates; i++)
        (void)fprintf(
            f, "%s{\"case\": \"%s\", \"per_second\": %.1f, \"probes\": %u, \"from_slot\": %u}",
            comma(i), launcher_name(b->rates[i].launcher), b->rates[i].per_second,
            b->rates[i].probes, b->rates[i].from_slot);
    json_memory(b, f);
    (void)fputs("\"scale\": [", f);
    for (size_t i = 0; i < b->n_comparisons; i++) {
        struct comparison *c = &b->comparisons[i];

        (void)fprintf(f,
                      "%s{\"case\": \"%s\", \"of\": \"%s\", \"few\": %lu, \"many\": %lu, "
                      "\"p50_few\": %.1f, \"p50_many\": %.1f}",
                      comma(i), c->what, c->dimension, c->small, c->large,
                      samples_quantile(&c->with_small, 0.5), samples_quantile(&c->with_large, 0.5));
    }
}

static void json_words(struct bench *b, FILE *f)
{
    (void)fputs("],\n\"budgets\": [", f);
    for (size_t i = 0; i < b->n_budgets; i++) {
        const struct budget *g = &b->budgets[i];

        (void)fprintf(
            f,
            "%s{\"budget\": \"%s\", \"limit\": \"%s\", \"verdict\": \"%s\", \"measured\": \"%s\"}",
            comma(i), g->what, g->limit, verdict_names[g->verdict], g->measured);
    }
    (void)fputs("],\n\"notes\": [", f);
    for (size_t i = 0; i < b->n_notes; i++) {
        (void)fputs(comma(i), f);
        json_string(f, b->notes[i], strlen(b->notes[i]));
    }
    (void)fprintf(f, "],\n\"failed\": %s}\n", b->failed ? "true" : "false");
}

/* ---- all ---- */

static FILE *open_report(struct bench *b, const char *path)
{
    FILE *f = path ? fopen(path, "we") : NULL;

    if (path && !f)
        fail(b, "FAILED to write '%s': %s", path, strerror(errno));
    return f;
}

void report(struct bench *b)
{
    FILE *markdown = open_report(b, b->markdown), *json = open_report(b, b->json);

    budgets_judge(b);
    print_page(b, &(struct page){.f = b->out});
    if (markdown) {
        print_page(b, &(struct page){.f = markdown, .markdown = true});
        (void)fclose(markdown);
    }
    if (json) {
        json_facts(b, json);
        json_results(b, json);
        json_words(b, json);
        (void)fclose(json);
    }
}
