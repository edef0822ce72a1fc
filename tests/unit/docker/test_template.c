/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/docker/template.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/jtext.h"
#include "tests/test.h"

/* The object that docker 28.2.2 was asked about: what it printed is what is wanted here. */
static const char object[] =
    "{\"Id\":\"aaaaaaaaaaaaaaaa\",\"Path\":\"sleep\",\"State\":{\"Status\":\"running\",\"Running\":"
    "true,"
    "\"Paused\":false,\"Pid\":12},\"Name\":\"/n\",\"Mounts\":[{\"Type\":\"bind\",\"Source\":\"/a\","
    "\"Destination\":\"/b\",\"Mode\":\"z\",\"RW\":true,\"Propagation\":\"rprivate\"}],\"Config\":{"
    "\"User\":\"1:1\",\"Env\":[\"A=1\",\"B=<&>\"],\"Entrypoint\":null,\"Labels\":{\"k\":\"v\","
    "\"b.c\":\"d\"}},\"HostConfig\":{\"Tmpfs\":{\"/tmp\":\"\",\"/run\":\"size=1\"},\"Binds\":null},"
    "\"None\":[]}";

static int eval(const char *text, struct buf *out, struct error *err)
{
    autoptr(jtext_doc) doc = NULL;

    assert_int_equal(jtext_parse(object, strlen(object), &doc, err), 0);
    return template_eval(text, jtext_root(doc), out, err);
}

static void check(const char *text, const char *want)
{
    struct error err;
    autobuf out;

    buf_init(&out, 1 << 20);
    CHECK(eval(text, &out, &err) == 0, "%s: %s", text, err.msg);
    CHECK_STR(out.data ? out.data : "", want, text);
}

static void test_openclaw(void **state)
{
    static const char *const rows[][2] = {
        {"{{.State.Running}}", "true"},
        {"{{.Id}}", "aaaaaaaaaaaaaaaa"},
        {"{{ index .Config.Labels \"k\" }}", "v"},
        {"{{ index .Config.Labels \"nope\" }}", ""},
        {"{{ index .Config.Labels \"k\" }}\t{{ index .Config.Labels \"b.c\" }}", "v\td"},
        {"{{range .Config.Env}}{{println .}}{{end}}", "A=1\nB=<&>\n"},
        {"{\"Mounts\":{{json .Mounts}},\"Tmpfs\":{{json .HostConfig.Tmpfs}}}",
         "{\"Mounts\":[{\"Type\":\"bind\",\"Source\":\"/a\",\"Destination\":\"/"
         "b\",\"Mode\":\"z\",\"RW\":"
         "true,\"Propagation\":\"rprivate\"}],\"Tmpfs\":{\"/run\":\"size=1\",\"/tmp\":\"\"}}"},
        {"{{.Id}} {{.State.Running}} {{.State.Paused}}", "aaaaaaaaaaaaaaaa true false"},
        {"{{json .HostConfig.Binds}}", "null"},
    };

    (void)state;
    FOR_EACH(row, rows)
    check((*row)[0], (*row)[1]);
}

static void test_go(void **state)
{
    static const char *const rows[][2] = {
        {"", ""},
        {"plain \\t text", "plain \\t text"},
        {"{{.Config.Labels.k}}", "v"},
        {"{{.Config.Labels.nope}}", "<no value>"},
        {"{{json .Config.Labels}}", "{\"b.c\":\"d\",\"k\":\"v\"}"},
        {"{{json .Config.Env}}", "[\"A=1\",\"B=<&>\"]"},
        {"{{.Config.Env}}", "[A=1 B=<&>]"},
        {"{{.Config.Labels}}", "map[b.c:d k:v]"},
        {"{{.HostConfig.Binds}}", "[]"},
        {"{{range $k,$v := .Config.Labels}}{{$k}}={{$v}} {{end}}", "b.c=d k=v "},
        {"{{range $i, $v := .Config.Env}}{{$i}}={{$v}} {{end}}", "0=A=1 1=B=<&> "},
        {"{{range $v := .Config.Env}}{{$v}};{{end}}", "A=1;B=<&>;"},
        {"{{len .Config.Env}}", "2"},
        {"{{join .Config.Env \",\"}}", "A=1,B=<&>"},
        {"{{upper .Name}}{{lower \"ABC\"}}{{title \"abc def\"}}", "/NabcAbc Def"},
        {"{{if .State.Running}}yes{{else}}no{{end}}", "yes"},
        {"{{if .State.Paused}}yes{{else}}no{{end}}", "no"},
        {"{{if eq .State.Status \"running\"}}y{{end}}", "y"},
        {"{{if not .State.Paused}}y{{end}}", "y"},
        {"{{if .HostConfig.Binds}}a{{else if .Id}}b{{else}}c{{end}}", "b"},
        {"{{index .Config.Env 0}}", "A=1"},
        {"{{json .Config.Entrypoint}}", "null"},
        {"{{with .Config}}{{.User}}{{end}}", "1:1"},
        {"{{with .None}}a{{else}}b{{end}}", "b"},
        {"{{print \"a\" 1 2 \"b\"}}", "a1 2b"},
        {"{{println \"a\" 1}}", "a 1\n"},
        {"{{printf \"%s-%d%%\" .Name .State.Pid}}", "/n-12%"},
        {"{{.Name | upper}}", "/N"},
        {"{{.Name | printf \"%s!\" | upper}}", "/N!"},
        {"{{(index .Mounts 0).Source}}", "/a"},
        {"a  {{- .Name -}}  x", "a/nx"},
        {"{{/* c */}}a{{- /* d */ -}} b", "ab"},
        {"{{$x := .Name}}{{$x}}", "/n"},
        {"{{range .Mounts}}{{.Source}}:{{.Destination}}{{else}}none{{end}}", "/a:/b"},
        {"{{range .None}}x{{else}}none{{end}}", "none"},
        {"{{range .Config.Env}}{{$.Name}}{{end}}", "/n/n"},
        {"{{\"a\\tb\\\"\"}}{{`a\\tb`}}", "a\tb\"a\\tb"},
        {"{{1}} {{true}} {{-5}}", "1 true -5"},
        {"{{eq 1 1}} {{eq .State.Pid 12}} {{ne \"a\" \"b\"}} {{lt 1 2}} {{ge 1 2}}",
         "true true true true false"},
        {"{{eq \"c\" \"a\" \"b\" \"c\"}}", "true"},
        {"{{and .State.Running .State.Paused}} {{or .State.Paused \"x\"}}", "false x"},
        {"{{truncate .Id 5}}", "aaaaa"},
        {"{{slice .Id 0 5}}", "aaaaa"},
        {"{{slice .Id 5 5}}", ""},
        {"{{.Config.Labels \"k\"}}", "v"}, /* as ps does with .Label */
    };

    (void)state;
    FOR_EACH(row, rows)
    check((*row)[0], (*row)[1]);
}

static void test_wrong(void **state)
{
    static const struct {
        const char *text;
        enum error_code code;
        const char *part;
    } rows[] = {
        {"{{", ERR_INVALID, "template: :1: unclosed action"},
        {"{{.Id", ERR_INVALID, "unclosed action"},
        {"{{foo}}", ERR_INVALID, "function \"foo\" not defined"},
        {"{{.Id | nope}}", ERR_INVALID, "function \"nope\" not defined"},
        {"{{end}}", ERR_INVALID, "unexpected {{end}}"},
        {"{{else}}", ERR_INVALID, "unexpected {{else}}"},
        {"{{if .Id}}", ERR_INVALID, "unexpected EOF"},
        {"a\nb{{range .Mounts}}", ERR_INVALID, ":2: unexpected EOF"},
        {"{{if}}x{{end}}", ERR_INVALID, "missing value for if"},
        {"{{\"unclosed}}", ERR_INVALID, "unterminated quoted string"},
        {"{{$nope}}", ERR_INVALID, "undefined variable $nope"},
        {"{{(.Id}}", ERR_INVALID, "unclosed left paren"},
        {"{{.Id}}{{foo}}", ERR_INVALID, "function"},
        {"{{if .None}}{{foo}}{{end}}", ERR_INVALID, "function"},
        {"{{/* a", ERR_INVALID, "unclosed comment"},
        {"{{.Nope}}", ERR_UNSUPPORTED,
         "template: :1:2: executing \"\" at <.Nope>: map has no entry for key \"Nope\""},
        {"{{.Config.Nope}}", ERR_UNSUPPORTED, "map has no entry for key \"Nope\""},
        {"{{.State.Running.X}}", ERR_UNSUPPORTED, "can't evaluate field X"},
        {"{{range .Id}}x{{end}}", ERR_UNSUPPORTED, "range can't iterate over"},
        {"{{index .Config.Env 7}}", ERR_UNSUPPORTED, "index out of range: 7"},
        {"{{index .Config.Env \"x\"}}", ERR_UNSUPPORTED,
         "cannot index slice/array with type string"},
        {"{{len 1}}", ERR_UNSUPPORTED, "len of type int"},
        {"{{.Id .Name}}", ERR_UNSUPPORTED, "has arguments"},
        {"{{eq 1 \"a\"}}", ERR_UNSUPPORTED, "incompatible types"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        struct error err;
        autobuf out;
        int r;

        buf_init(&out, 1 << 20);
        r = eval(row->text, &out, &err);
        CHECK(r < 0, "%s: printed '%s'", row->text, out.data ? out.data : "");
        CHECK(err.code == row->code, "%s: %s (%s)", row->text, error_code_name(err.code), err.msg);
        CHECK(strstr(err.msg, row->part), "%s: '%s' does not say '%s'", row->text, err.msg,
              row->part);
        CHECK(out.len == 0 || err.code != ERR_INVALID, "%s: printed before it failed", row->text);
    }
}

/* Ranges in ranges would run for ever. */
static void test_work_is_bounded(void **state)
{
    char text[4096] = "";
    size_t n = 0;
    struct error err;
    autobuf out;

    (void)state;
    for (int i = 0; i < 31; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "{{range $.Config.Env}}");
    for (int i = 0; i < 31; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "{{end}}");
    buf_init(&out, 1 << 20);
    CHECK_ERR(eval(text, &out, &err), err, ERR_TOO_LARGE, "too much");
    n = 0;
    for (int i = 0; i < 40; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "{{if true}}");
    CHECK_ERR(eval(text, &out, &err), err, ERR_INVALID, "nested too deep");
}

static void test_unescape(void **state)
{
    char text[] = "a\\tb\\nc\\d\\";

    (void)state;
    template_unescape(text);
    assert_string_equal(text, "a\tb\nc\\d\\");
}

static const struct CMUnitTest claims[] = {
    CLAIM("the templates of OpenClaw print what docker prints", test_openclaw),
    CLAIM("other templates print what docker prints", test_go),
    CLAIM("a template that is none prints nothing and says why", test_wrong),
    CLAIM("the work of a template is bounded", test_work_is_bounded),
    CLAIM("tables know the escapes \\t and \\n", test_unescape),
};

int main(void)
{
    return RUN_CLAIMS("docker/template", claims);
}
