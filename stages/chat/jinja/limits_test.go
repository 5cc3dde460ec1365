package jinja

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBounded: templates that ask for too much end with an error that says what there was too much of.
func TestBounded(t *testing.T) {
	deep := func(open, middle, closing string, n int) string {
		return strings.Repeat(open, n) + middle + strings.Repeat(closing, n)
	}
	for _, c := range []struct{ name, source, want string }{
		{"text times a number", `{{ "a" * 10 ** 9 }}`, "a text longer than 16777216 bytes"},
		{"list times a number", `{{ [1] * 10 ** 9 }}`, "a sequence of more than 20000000 elements"},
		{"number times list", `{{ (10 ** 18 * (1, 2)) | length }}`, "a sequence of more than 20000000 elements"},
		{"range", `{{ range(10 ** 12) }}`, "OverflowError: Range too big"},
		{"huge range bounds", `{{ range(10 ** 30) }}`, "too large to convert"},
		{"power", `{{ 10 ** (10 ** 10) }}`, "an integer of more than 16384 bits"},
		{"power of floats", `{{ 10.0 ** 400 }}`, "OverflowError"},
		{"repeated squaring", `{% set ns = namespace(x=7) %}{% for i in range(99) %}{% set ns.x = ns.x * ns.x %}{% endfor %}`,
			"an integer of more than 16384 bits"},
		{"loops in loops", strings.Repeat(`{% for i in range(99999) %}`, 3) + strings.Repeat(`{% endfor %}`, 3),
			"more than 20000000 steps"},
		{"output", `{% for i in range(99999) %}{% for i in range(99999) %}xxxxxxxxxxxxxxxxxxxxxx{% endfor %}{% endfor %}`,
			"the rendered text is longer than 16777216 bytes"},
		{"doubling text", `{% set ns = namespace(x="ab") %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}`,
			"a text longer than"},
		{"growing text", `{% set ns = namespace(x="") %}{% for i in range(99999) %}{% set ns.x = ns.x ~ "abcdefgh" %}{% endfor %}`,
			"more than 268435456 bytes of text"},
		{"doubling lists", `{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}`,
			"more than 20000000 steps"},
		{"shared lists printed", `{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}`,
			"a text longer than"},
		{"shared lists as JSON", `{% set ns = namespace(x=[]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson(indent=9999) }}`,
			"a text longer than"},
		{"shared lists compared", `{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}`,
			"more than 20000000 steps"},
		{"deep list printed", `{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}`,
			"RecursionError"},
		{"a namespace within itself", `{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}`, "RecursionError"},
		{"endless macro", `{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}`, "RecursionError: maximum recursion depth exceeded"},
		{"endless call block", `{% macro f() %}{{ caller() }}{% call f() %}{% endcall %}{% endmacro %}{% call f() %}{% endcall %}`, "RecursionError"},
		{"endless loop call", `{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}`, "RecursionError"},
		{"generators of generators", `{% set ns = namespace(x=[1]) %}{% for i in range(9999) %}{% set ns.x = ns.x | select %}{% endfor %}{{ ns.x | list }}`,
			"RecursionError"},
		{"brackets", `{{ ` + deep("(", "1", ")", 9999) + ` }}`, "nested deeper than 200 levels"},
		{"lists", `{{ ` + deep("[", "", "]", 9999) + ` }}`, "nested deeper than 200 levels"},
		{"signs", `{{ ` + strings.Repeat("- ", 9999) + `1 }}`, "nested deeper than 200 levels"},
		{"nots", `{{ ` + strings.Repeat("not ", 9999) + `1 }}`, "nested deeper than 200 levels"},
		{"conditions", `{{ ` + strings.Repeat("1 if 0 else ", 9999) + `1 }}`, "nested deeper than 200 levels"},
		{"ifs", deep("{% if 1 %}", "", "{% endif %}", 9999), "nested deeper than 200 levels"},
		{"targets", `{% set ` + deep("(", "a", ")", 9999) + ` = 1 %}`, "nested deeper than 200 levels"},
		{"a long sum", `{{ 1` + strings.Repeat("+1", 9999) + ` }}`, "RecursionError"},
		{"a long chain of filters", `{{ 1` + strings.Repeat("|string", 9999) + ` }}`, "RecursionError"},
		{"padding", `{{ "a".center(10 ** 11) }}`, "a text longer than"},
		{"zfill", `{{ "1".zfill(10 ** 11) }}`, "a text longer than"},
		{"tabs", `{{ ("\t" * 999).expandtabs(10 ** 9) }}`, "a text longer than"},
		{"format width", `{{ "{:99999999999}".format(1) }}`, "a text longer than"},
		{"percent width", `{{ "%999999999d" % 1 }}`, "width or precision too big"},
		{"replace", `{{ ("a" * 9999) | replace("a", "b" * 9999) }}`, "a text longer than"},
		{"replace nothing", `{{ ("a" * 9999) | replace("", "b" * 9999) }}`, "a text longer than"},
		{"join", `{{ range(9999) | join("b" * 9999) }}`, "a text longer than"},
		{"indent", `{{ ("\n" * 9999) | indent(9999) }}`, "a text longer than"},
		{"JSON indent", `{{ [[1]] | tojson(indent=10 ** 9) }}`, "an indentation of 1000000000"},
		{"batch", `{{ [1] | batch(10 ** 11, 0) | list }}`, "more than 20000000 steps"},
		{"slices", `{{ [1] | slice(10 ** 11) | list }}`, "more than 20000000 steps"},
		{"wide integers in text", `{{ "1" * 5000 | int + 1 }}`, "TypeError"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := renderJSON(c.source, []byte(`{}`), DefaultLimits())
			require.ErrorContains(t, err, c.want, "rendered %.80q", out)
		})
	}
}

// TestStopped: a rendering that nobody waits for ends, whatever it is at.
func TestStopped(t *testing.T) {
	for _, source := range []string{
		strings.Repeat(`{% for i in range(99999) %}`, 3) + strings.Repeat(`{% endfor %}`, 3),
		`{% for i in range(999) %}{{ ("ab" * 99999) | upper | length }}{% endfor %}`,
		`{% macro f(n) %}{% for i in range(9) %}{{ f(n - 1) if n }}{% endfor %}{% endmacro %}{{ f(9) }}`,
	} {
		limits, asked := DefaultLimits(), 0
		limits.Stop = func() bool { asked++; return asked == 4 }
		_, err := renderJSON(source, []byte(`{}`), limits)
		require.ErrorContains(t, err, "rendering was stopped", source)
		require.Equal(t, 4, asked)
	}
}

// TestSandbox: what a template must not reach prints as nothing and cannot be used.
func TestSandbox(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{`{{ "".__class__.__mro__ }}`, "SecurityError: access to attribute '__class__' of 'str' object is unsafe."},
		{`{{ x["__class__"]() }}`, "SecurityError"},
		{`{{ (x | attr("__init__"))() }}`, "SecurityError"},
		{`{{ "{0.__class__.__name__}".format(x) }}`, "SecurityError"},
		{`{{ x.append(1) }}`, "SecurityError: access to attribute 'append' of 'list' object is unsafe."},
		{`{{ x.sort() }}`, "SecurityError"},
		{`{{ {}.setdefault("a", 1) }}`, "SecurityError"},
		{`{% for i in x.append %}{% endfor %}`, "SecurityError"},
	} {
		_, err := renderJSON(c.source, []byte(`{"x": [1]}`), DefaultLimits())
		require.ErrorContains(t, err, c.want, c.source)
	}
	out, err := renderJSON(`{{ x.pop() }}{{ x }}`, []byte(`{"x": [1, 2]}`), DefaultLimits())
	require.NoError(t, err)
	require.Equal(t, "2[1]", out)
}

// TestErrorsTellWhere: the line, the class and the reason.
func TestErrorsTellWhere(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"a\nb\n{{ x", "chat template line 3: TemplateSyntaxError: expected 'end of print statement', got 'end of template'"},
		{"{# never closed", "chat template line 1: TemplateSyntaxError: Missing end of comment tag"},
		{"\n{% raw %}", "chat template line 2: TemplateSyntaxError: Missing end of raw directive"},
		{"{% for x in y %}\n{% break %}{% endfor %}{% break %}", "chat template line 2: TemplateSyntaxError: 'break' outside loop"},
		{"{% include 'x' %}",
			"chat template line 1: TemplateSyntaxError: {% include %} is not supported: a chat template is one file"},
		{"\n\n{{ a.b.c }}", "chat template line 3: UndefinedError: 'a' is undefined"},
		{"{% if 1 %}\n{{ 1 + 'a' }}{% endif %}",
			"chat template line 2: TypeError: unsupported operand type(s) for +: 'int' and 'str'"},
		{"{{ raise_exception('roles must alternate') }}", "roles must alternate"},
		{"{{ (1 }}", "chat template line 1: TemplateSyntaxError: unexpected '}', expected ')'"},
		{"{{ 'abc }}", "chat template line 1: TemplateSyntaxError: the string that begins here has no end: \"'abc }}\""},
	} {
		_, err := renderJSON(c.source, []byte(`{}`), DefaultLimits())
		require.EqualError(t, err, c.want, c.source)
	}
}
