/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table. Schemas are put together from the macros below: each field with its type, its bounds
 * and a sentence for whoever fills it in. Texts stand inside JSON: no quotes, no lone backslash.
 */
#include "tool/tool.h"

#include <string.h>

#include "base/limits.h"

#define NUMBER_(n) #n
#define NUMBER(n)  NUMBER_(n)

/* clang-format off */

/* ---- fields and objects ---- */

#define FIELD(name, type, more, about) \
    "\"" name "\":{\"type\":" type more ",\"description\":\"" about "\"}"
#define TEXT(name, about) FIELD(name, "\"string\"", "", about)
#define TEXT_UP_TO(name, most, about) \
    FIELD(name, "\"string\"", ",\"maxLength\":" NUMBER(most), about)
#define SOME_TEXT(name, most, about) \
    FIELD(name, "\"string\"", ",\"minLength\":1,\"maxLength\":" NUMBER(most), about)
#define WORD(name, words, about)       FIELD(name, "\"string\"", ",\"enum\":[" words "]", about)
#define BOOL(name, about)              FIELD(name, "\"boolean\"", "", about)
#define COUNT(name, about)             FIELD(name, "\"integer\"", ",\"minimum\":0", about)
#define COUNT_FROM(name, least, about) FIELD(name, "\"integer\"", ",\"minimum\":" #least, about)
#define BETWEEN(name, least, most, about) \
    FIELD(name, "\"integer\"", ",\"minimum\":" #least ",\"maximum\":" NUMBER(most), about)
#define SECONDS(name, least, most, about) \
    FIELD(name, "\"number\"", ",\"minimum\":" #least ",\"maximum\":" NUMBER(most), about)
#define LIST(name, items, more, about) \
    "\"" name "\":{\"type\":\"array\",\"items\":" items more ",\"description\":\"" about "\"}"
#define A_TEXT "{\"type\":\"string\"}"

#define OBJECT(required, fields) \
    "{\"type\":\"object\",\"properties\":{" fields "},\"required\":[" required \
    "],\"additionalProperties\":false}"
#define ONE(a)           "\"" a "\""
#define TWO(a, b)        ONE(a) "," ONE(b)
#define THREE(a, b, c)   TWO(a, b) "," ONE(c)
#define FOUR(a, b, c, d) THREE(a, b, c) "," ONE(d)

/* Bounds of src/files as they are written here, and told in the descriptions. */
#define PATH_CHARACTERS 16380 /* every byte of a path escaped */
#define EDITS           256
#define ENTRIES         10000
#define MATCHES         10000
#define CONTEXT         20
#define PATTERN         4096
#define PATCH           16777216
_Static_assert(PATH_CHARACTERS == 4 * (LIMIT_PATH - 1), "schemas: path");
_Static_assert(EDITS == LIMIT_FILES_EDITS, "schemas: edits");
_Static_assert(ENTRIES == LIMIT_FILES_ENTRIES, "schemas: ls, find");
_Static_assert(MATCHES == LIMIT_FILES_MATCHES, "schemas: grep");
_Static_assert(CONTEXT == LIMIT_FILES_CONTEXT, "schemas: context");
_Static_assert(PATTERN == LIMIT_FILES_PATTERN, "schemas: pattern");
_Static_assert(PATCH == LIMIT_PATCH_BYTES, "schemas: patch");
_Static_assert(LIMIT_FILES_LINES == 2000 && LIMIT_FILES_READ == 256 << 10, "read_about");
_Static_assert(LIMIT_TOOL_IMAGE == 3000000 && LIMIT_TOOL_CONTENT == 16 << 20, "read, write_about");
_Static_assert(LIMIT_FILES_LINE_OUT == 500, "grep_about");

/* ---- fields that several have ---- */

#define PATH(about) SOME_TEXT("path", PATH_CHARACTERS, about)
#define A_FILE \
    PATH("The file, relative to the workspace (src/main.c), or absolute inside it. Spell it as " \
         "results do: \\\\xHH for bytes that are no plain text.")
#define A_FOLDER PATH("The folder, relative to the workspace. Default: the workspace itself.")
#define EXPECTED \
    SOME_TEXT("expected", LIMIT_TOOL_VERSION, \
              "The version that an earlier read, write or edit gave. If the file has changed " \
              "since, nothing is done and the call fails: read it again.")
#define GOT_PATH TEXT("path", "The file, as it was asked for.")
#define VERSION  TEXT("version", "Stands for this content; give it as expected to write or edit.")
#define WARNINGS LIST("warnings", A_TEXT, "", "What else happened, in words.")
#define LINES_CHANGED \
    COUNT("added", "Lines that are new.") "," COUNT("removed", "Lines that are gone.")
#define CUT \
    BOOL("truncated", "There is more than this; why says what ended it.") "," \
    WORD("why", FOUR("limit", "size", "work", "time"), \
         "limit: as many as were asked for. size: the answer is full. work, time: the search was " \
         "given up.") "," \
    TEXT("note", "What to do about it, in words.") "," \
    COUNT("unreadable", "Files and folders that could not be looked into.")
#define ROWS(about) BETWEEN("rows", 1, LIMIT_TERMINAL, about)
#define COLS(about) BETWEEN("cols", 1, LIMIT_TERMINAL, about)

/* How a command stands: of exec and process alike. */
#define STATES \
    FOUR("exited", "signaled", "limit", "failed") "," THREE("running", "cancelled", "interrupted")
#define A_STATUS \
    WORD("status", STATES, \
         "exited: see exitCode. signaled: see signal. limit: ended by a limit, see limit. " \
         "failed: it could not be started, see reason. running: it goes on, see process. " \
         "cancelled: the caller gave it up. interrupted: the gateway ended meanwhile.") "," \
    FIELD("exitCode", "\"integer\"", "", "Its exit status; 0 is success.") "," \
    TEXT("signal", "The signal that ended it, such as SIGSEGV.") "," \
    "\"limit\":" OBJECT(ONE("name"), \
        TEXT("name", "Which limit: time, memory, ...") "," \
        FIELD("value", "\"number\"", "", "Where it stands: seconds, bytes.") "," \
        FIELD("seen", "\"number\"", "", "What the command came to.")) "," \
    TEXT("reason", "The same in a sentence, if there is more to say.")
#define OUTPUT_FACTS \
    BOOL("truncated", "Output is missing here; the whole is in the log: process, action log.") "," \
    COUNT("outputBytes", "Bytes that it has written in all.") "," \
    COUNT("next", "Where to go on: offset of process, action log.")

/* ---- exec, process ---- */

static const char exec_about[] =
    "Runs a command in this session's box and waits for its end. Give exactly one of command (a "
    "line for /bin/sh: pipes, redirections, variables) or argv (words, no shell, nothing to "
    "quote). It starts in the workspace; keep there what is to last. It gets no input unless stdin "
    "is given. When the timeout passes it is killed with all it started. Servers and other long "
    "work: background true, then the tool process with the id that comes back. Of long output the "
    "beginning and the end are shown (truncated); read the rest with process, action log. A "
    "command that fails is no error of the tool: look at status and exitCode.";
static const char exec_in[] =
    OBJECT("",
        SOME_TEXT("command", LIMIT_EXEC_WORD, "A command line, run by /bin/sh.") ","
        LIST("argv", "{\"type\":\"string\",\"maxLength\":" NUMBER(LIMIT_EXEC_WORD) "}",
             ",\"minItems\":1,\"maxItems\":" NUMBER(LIMIT_EXEC_WORDS),
             "The program and its words, run without a shell.") ","
        SOME_TEXT("cwd", PATH_CHARACTERS, "Where it starts. Default: the workspace.") ","
        "\"env\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\","
        "\"maxLength\":" NUMBER(LIMIT_EXEC_WORD) "},\"description\":\"More environment "
        "variables; names are letters, digits and _. At most "
        NUMBER(LIMIT_EXEC_ENV) ".\"},"
        SECONDS("timeout", 0.1, LIMIT_EXEC_SECONDS,
                "Seconds until it is killed. Default: 1800.") ","
        BOOL("background", "Return at once and let it run on.") ","
        BOOL("pty", "Give it a terminal, for programs that want one.") ","
        ROWS("Of the terminal; default 24.") "," COLS("Of the terminal; default 80.") ","
        TEXT_UP_TO("stdin", LIMIT_EXEC_STDIN,
            "What it reads; then its input ends, or, in the background, waits for process write.") ","
        BOOL("stdinOpen", "Its input waits for process write also if it is not in the background."));
static const char exec_out[] =
    OBJECT(ONE("status"), A_STATUS ","
        TEXT("stdout", "What it wrote; bytes that are not UTF-8 are shown as U+FFFD.") ","
        TEXT("stderr", "The same; empty with pty, where both come as stdout.") ","
        OUTPUT_FACTS ","
        TEXT("process", "Its id for the tool process, if it runs on or its output was cut."));

static const char process_about[] =
    "Looks after the commands that exec started in this session. list: all of them. poll: how one "
    "stands; waits up to wait seconds for its end. log: what it has written, both streams in the "
    "order in which it came, from offset on; next is the offset to go on with, more says that "
    "there is more already. write: data to its input; eof true ends the input. kill: ends it with "
    "all it started, or sends it only the given signal. resize: its terminal. All but list need "
    "process, the id that exec gave.";
static const char process_in[] =
    OBJECT(ONE("action"),
        WORD("action", THREE("list", "poll", "log") "," THREE("write", "kill", "resize"),
             "What to do.") ","
        SOME_TEXT("process", LIMIT_PROCESS_ID, "The command's id, from exec or list.") ","
        COUNT("offset", "log: where to begin: next of an earlier result. Default: 0.") ","
        BETWEEN("limit", 1, LIMIT_PROCESS_LOG, "log: bytes of output, about.") ","
        TEXT_UP_TO("data", LIMIT_EXEC_STDIN,
                   "write: the text; say \\\\n at the end of a line.") ","
        BOOL("eof", "write: its input ends after the data.") ","
        WORD("signal", FOUR("SIGTERM", "SIGKILL", "SIGINT", "SIGHUP") ","
                 THREE("SIGQUIT", "SIGUSR1", "SIGUSR2") "," TWO("SIGSTOP", "SIGCONT"),
             "kill: send only this.") ","
        ROWS("resize: of the terminal.") "," COLS("resize: of the terminal.") ","
        SECONDS("wait", 0, LIMIT_PROCESS_WAIT, "poll: seconds to wait. Default: 0."));
#define ONE_PROCESS \
    TEXT("process", "Its id.") "," TEXT("command", "What runs.") "," A_STATUS "," \
    BOOL("background", "Nobody waits for it.") "," OUTPUT_FACTS
static const char process_out[] =
    OBJECT("",
        LIST("processes", OBJECT(TWO("process", "status"), ONE_PROCESS), "",
             "list: the commands of this session, newest first.") ","
        ONE_PROCESS ","
        TEXT("content", "log: the output; bytes that are not UTF-8 are shown as U+FFFD.") ","
        BOOL("more", "log: there is more already, from next on."));

/* ---- files ---- */

static const char read_about[] =
    "Reads a file of the workspace. Text comes in content: up to 2000 lines or 256 KiB, from line "
    "offset on; if there is more, next is the offset to go on with. Images (PNG, JPEG, GIF, WebP, "
    "up to 3 MB) come whole in data with a mimeType. Of other files only kind and size come; "
    "with bytes true any file comes as base64 in data, up to 256 KiB at once, and offset and "
    "limit count bytes. Keep version if you mean to change the file.";
static const char read_in[] =
    OBJECT(ONE("path"), A_FILE ","
        COUNT("offset", "The first line, from 1; with bytes, the first byte, from 0.") ","
        COUNT_FROM("limit", 1, "Lines at most; with bytes, bytes at most.") ","
        BOOL("bytes", "Give back bytes as base64, whatever they are."));
static const char read_out[] =
    OBJECT(FOUR("path", "kind", "size", "version"), GOT_PATH ","
        WORD("kind", THREE("text", "binary", "image"), "What it is, by its content.") ","
        TEXT("content", "The lines, with their line ends as they are.") ","
        TEXT("data", "Bytes in base64: of an image, or with bytes.") ","
        TEXT("mimeType", "Of an image.") ","
        COUNT("size", "Bytes of the whole file.") ","
        COUNT("lines", "Lines in content.") ","
        COUNT("totalLines", "Lines of the whole file, if they were counted.") ","
        COUNT("next", "There is more: the offset to go on with.") ","
        COUNT("nextByte", "There is more, but the line is too long to be given whole: go on "
              "with bytes true at this offset.") ","
        TEXT("note", "The same in words.") "," VERSION);

static const char write_about[] =
    "Writes a whole file of the workspace, replacing it or making it with its folders. Content is "
    "text, or base64 with encoding base64; at most 16 MiB. The file is replaced in one step and "
    "keeps its owner and mode. To change a part of a file use edit. new true refuses a name that "
    "is taken; expected refuses a file that has changed since it was read.";
static const char write_in[] =
    OBJECT(TWO("path", "content"), A_FILE ","
        TEXT_UP_TO("content", LIMIT_TOOL_CONTENT,
                   "All that the file will hold, with its last line end.") ","
        WORD("encoding", TWO("utf-8", "base64"), "Of content. Default: utf-8.") ","
        BOOL("parents", "Make missing folders. Default: true.") ","
        BOOL("new", "Refuse an existing file.") "," EXPECTED);
static const char write_out[] =
    OBJECT(THREE("path", "created", "version"), GOT_PATH ","
        BOOL("created", "There was no such file before.") ","
        LINES_CHANGED "," VERSION "," WARNINGS);

static const char edit_about[] =
    "Replaces exact text in a file of the workspace; every other byte stays. Each oldText is "
    "looked for literally, blanks and line ends included, and must be there exactly once (or set "
    "all): give enough of the lines around it. Edits are applied one after the other, all or "
    "none. Back comes a diff of what changed.";
static const char edit_in[] =
    OBJECT(TWO("path", "edits"), A_FILE ","
        LIST("edits",
             OBJECT(TWO("oldText", "newText"),
                 SOME_TEXT("oldText", LIMIT_TOOL_CONTENT, "What stands there now, exactly.") ","
                 TEXT_UP_TO("newText", LIMIT_TOOL_CONTENT, "What takes its place.") ","
                 BOOL("all", "Replace every occurrence.")),
             ",\"minItems\":1,\"maxItems\":" NUMBER(EDITS), "The replacements, in order.") ","
        EXPECTED);
static const char edit_out[] =
    OBJECT(FOUR("path", "diff", "added", "removed") "," ONE("version"), GOT_PATH ","
        TEXT("diff", "What changed, as unified hunks; a long one is cut.") ","
        LINES_CHANGED "," VERSION "," WARNINGS);

static const char patch_about[] =
    "Adds, changes, moves and deletes several files of the workspace at once, all or none. The "
    "patch begins with the line '*** Begin Patch' and ends with '*** End Patch'. Between them: "
    "'*** Add File: PATH' with lines that begin with +; '*** Delete File: PATH'; '*** Update "
    "File: PATH', perhaps '*** Move to: PATH', then hunks: a line '@@' (perhaps with a line of "
    "the file to go to first), then lines that begin with a blank (context), - (old) or + (new). "
    "Give about three lines of context; there are no line numbers. Add File refuses a name that "
    "is taken.";
static const char patch_in[] =
    OBJECT(ONE("patch"), SOME_TEXT("patch", PATCH, "The patch, from its first line to its last."));
static const char patch_out[] =
    OBJECT(FOUR("added", "updated", "deleted", "moved") "," ONE("diff"),
        COUNT("added", "Files that are new.") "," COUNT("updated", "Files that were changed.") ","
        COUNT("deleted", "Files that are gone.") ","
        COUNT("moved", "Files, of those changed, that have another name.") ","
        TEXT("diff", "What changed, as unified diffs; a long one is cut."));

static const char ls_about[] =
    "Lists a folder of the workspace, sorted by name; hidden files too. With recursive also what "
    "is in its folders (but not in .git). At most limit entries; truncated says if there are more.";
static const char ls_in[] =
    OBJECT("", A_FOLDER "," BOOL("recursive", "Folders in folders too.") ","
        BETWEEN("limit", 1, ENTRIES, "Entries at most. Default: " NUMBER(TOOL_LS_ENTRIES) "."));
#define AN_ENTRY \
    OBJECT(TWO("path", "type"), \
        TEXT("path", "As the other file tools take it.") "," \
        WORD("type", THREE("file", "directory", "symlink") "," ONE("other"), \
             "other: a FIFO, socket or device.") "," \
        COUNT("size", "Bytes of a file.") "," TEXT("modified", "When, in UTC."))
static const char ls_out[] =
    OBJECT(TWO("entries", "truncated"),
        LIST("entries", AN_ENTRY, "", "What is in the folder.") "," CUT);

static const char find_about[] =
    "Finds files and folders of the workspace by a glob: * ? [a-z] {a,b} within a name, ** over "
    "folders. A pattern without a slash (*.c) is held against names at any depth, one with a "
    "slash (src/**/*.c) against paths below path. Folders end in /. .git is not looked into.";
static const char find_in[] =
    OBJECT(ONE("pattern"), SOME_TEXT("pattern", PATTERN, "The glob.") "," A_FOLDER ","
        BETWEEN("limit", 1, ENTRIES, "Paths at most. Default: " NUMBER(TOOL_FIND_PATHS) "."));
static const char find_out[] =
    OBJECT(TWO("paths", "truncated"),
        LIST("paths", A_TEXT, "", "Sorted, as the other file tools take them.") "," CUT);

static const char grep_about[] =
    "Searches the lines of text files in the workspace by a regular expression (. [] ^ $ * + ? "
    "{m,n} | () \\d \\w \\s \\b; no back references, no lookaround), or by plain text with "
    "literal. path is a folder or one file. Binary files and .git are left out. Each match is a "
    "path, a line number and the line, cut at 500 bytes; lines of context are marked.";
static const char grep_in[] =
    OBJECT(ONE("pattern"), SOME_TEXT("pattern", PATTERN, "What to look for.") ","
        PATH("A folder or one file, relative to the workspace. Default: the workspace.") ","
        BOOL("literal", "The pattern is plain text.") ","
        BOOL("ignoreCase", "Upper and lower case (ASCII) are the same.") ","
        BETWEEN("context", 0, CONTEXT, "Lines around each match. Default: 0.") ","
        SOME_TEXT("glob", PATTERN, "Only files that match, as in find: *.c") ","
        BETWEEN("limit", 1, MATCHES,
                "Matching lines at most. Default: " NUMBER(TOOL_GREP_MATCHES) "."));
static const char grep_out[] =
    OBJECT(THREE("matches", "files", "truncated"),
        LIST("matches",
             OBJECT(THREE("path", "line", "text"),
                 TEXT("path", "As the other file tools take it.") ","
                 COUNT_FROM("line", 1, "Its number.") ","
                 TEXT("text", "The line; bytes that are not UTF-8 are shown as U+FFFD.") ","
                 BOOL("context", "No match, but a line around one.") ","
                 BOOL("cut", "The line goes on.")),
             "", "In the order of paths and lines.") ","
        COUNT("files", "Files that were searched.") ","
        COUNT("binary", "Files that were left out as binary.") "," CUT);

/* ---- web, session ---- */

static const char fetch_about[] =
    "Gets a page of the web with GET, through the session's network rules: only hosts that they "
    "allow can be reached. Redirects are followed. What comes is text in content, up to maxBytes; "
    "get images, archives and other bytes with exec.";
static const char fetch_in[] =
    OBJECT(ONE("url"), SOME_TEXT("url", LIMIT_WEB_URL, "Begins with https:// or http://.") ","
        BETWEEN("maxBytes", 1, LIMIT_WEB_BYTES, "Bytes of content at most. Default: 262144.") ","
        SECONDS("timeout", 0.1, LIMIT_WEB_SECONDS, "Seconds to wait. Default: 30."));
static const char fetch_out[] =
    OBJECT(TWO("url", "status"), TEXT("url", "Where it came from, after redirects.") ","
        BETWEEN("status", 100, 599, "HTTP's; 200 is success.") ","
        TEXT("contentType", "As the server says.") "," TEXT("content", "The text.") ","
        BOOL("truncated", "There was more than maxBytes."));

static const char search_about[] =
    "Searches the web and gives back titles, addresses and descriptions. Needs a network and a "
    "key of the search service in the session's settings. Read a page with web_fetch.";
static const char search_in[] =
    OBJECT(ONE("query"), SOME_TEXT("query", LIMIT_WEB_QUERY, "What to look for.") ","
        BETWEEN("count", 1, LIMIT_WEB_RESULTS, "Results at most. Default: 5."));
static const char search_out[] =
    OBJECT(ONE("results"),
        LIST("results",
             OBJECT(TWO("title", "url"), TEXT("title", "Of the page.") ","
                 TEXT("url", "Its address.") "," TEXT("description", "A few words of it.")),
             "", "Best first."));

static const char status_about[] =
    "Says where this session is: agent, session, workspace, how commands run, which network they "
    "have, the limits on them, the boxes and the commands that run now.";
static const char status_out[] =
    "{\"type\":\"object\",\"properties\":{" TEXT("agent", "Whose session it is.") ","
    TEXT("session", "Its key.") "," TEXT("workspace", "What commands call the workspace.")
    "},\"additionalProperties\":true}";

/* clang-format on */

#define EXEC                                                                       \
    .description = exec_about, .input_schema = exec_in, .output_schema = exec_out, \
    .kind = TOOL_EXEC, .destructive = true, .open_world = true
#define APPLY_PATCH                                                                   \
    .description = patch_about, .input_schema = patch_in, .output_schema = patch_out, \
    .kind = TOOL_FILES, .destructive = true

const struct tool tools[] = {
    {.name = "exec", .title = "Run a command", EXEC},
    {.name = "process",
     .title = "Look after commands",
     .description = process_about,
     .input_schema = process_in,
     .output_schema = process_out,
     .kind = TOOL_PROCESS,
     .destructive = true},
    {.name = "read",
     .title = "Read a file",
     .description = read_about,
     .input_schema = read_in,
     .output_schema = read_out,
     .kind = TOOL_FILES,
     .read_only = true,
     .idempotent = true},
    {.name = "write",
     .title = "Write a file",
     .description = write_about,
     .input_schema = write_in,
     .output_schema = write_out,
     .kind = TOOL_FILES,
     .destructive = true,
     .idempotent = true},
    {.name = "edit",
     .title = "Edit a file",
     .description = edit_about,
     .input_schema = edit_in,
     .output_schema = edit_out,
     .kind = TOOL_FILES,
     .destructive = true},
    {.name = "apply_patch", .title = "Apply a patch", APPLY_PATCH},
    {.name = "ls",
     .title = "List a folder",
     .description = ls_about,
     .input_schema = ls_in,
     .output_schema = ls_out,
     .kind = TOOL_FILES,
     .read_only = true,
     .idempotent = true},
    {.name = "find",
     .title = "Find files",
     .description = find_about,
     .input_schema = find_in,
     .output_schema = find_out,
     .kind = TOOL_FILES,
     .read_only = true,
     .idempotent = true},
    {.name = "grep",
     .title = "Search in files",
     .description = grep_about,
     .input_schema = grep_in,
     .output_schema = grep_out,
     .kind = TOOL_FILES,
     .read_only = true,
     .idempotent = true},
    {.name = "web_fetch",
     .title = "Get a web page",
     .description = fetch_about,
     .input_schema = fetch_in,
     .output_schema = fetch_out,
     .kind = TOOL_WEB,
     .read_only = true,
     .open_world = true},
    {.name = "web_search",
     .title = "Search the web",
     .description = search_about,
     .input_schema = search_in,
     .output_schema = search_out,
     .kind = TOOL_WEB,
     .read_only = true,
     .open_world = true},
    {.name = "session_status",
     .title = "Look at this session",
     .description = status_about,
     .input_schema = "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}",
     .output_schema = status_out,
     .kind = TOOL_STATUS,
     .read_only = true,
     .idempotent = true},
    {.name = "execute", .title = "Run a command", EXEC, .unlisted = true, .same_as = "exec"},
    {.name = "bash", .title = "Run a command", EXEC, .unlisted = true, .same_as = "exec"},
    {.name = "apply-patch",
     .title = "Apply a patch",
     APPLY_PATCH,
     .unlisted = true,
     .same_as = "apply_patch"},
};
const size_t n_tools = sizeof(tools) / sizeof(*tools);

const struct tool *tool_find(const char *name)
{
    for (size_t i = 0; i < n_tools; i++)
        if (strcmp(tools[i].name, name) == 0)
            return tools[i].same_as ? tool_find(tools[i].same_as) : &tools[i];
    return NULL;
}
