package schema

import "github.com/sluice-ai/sluice/stages/grammar/lang"

// formats returns an expression for a format, "" if it is not known. The expression allows only a part of what the
// standard of the format does, which is enough for a generator: what it generates is of the format.
func formats(name string) string {
	const (
		year   = `\d{4}`
		date   = year + `-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))`
		leap   = `(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29`
		clock  = `(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?`
		zone   = `(?:[zZ]|[+-](?:[01]\d|2[0-3]):[0-5]\d)`
		byte4  = `(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
		ipv4   = `(?:` + byte4 + `\.){3}` + byte4
		label  = `[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?`
		host   = label + `(?:\.` + label + `){0,2}`
		atom   = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
		hex16  = `[0-9A-Fa-f]{1,4}`
		escape = `%[0-9A-Fa-f]{2}`
		path   = `(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|` + escape + `)*`
		query  = `(?:\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|` + escape + `)*)?(?:#(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|` + escape + `)*)?`
		step   = `(?:/(?:[^/~]|~[01])*)*`
	)
	switch name {
	case "date":
		return `(?:` + date + `|` + leap + `)`
	case "time":
		return clock + zone
	case "date-time":
		return `(?:` + date + `|` + leap + `)[Tt]` + clock + zone
	case "duration":
		return `P(?:\d+W|\d+D|\d+M(?:\d+D)?|\d+Y(?:\d+M(?:\d+D)?)?|(?:\d+D|\d+M(?:\d+D)?|\d+Y(?:\d+M(?:\d+D)?)?)?T` +
			`(?:\d+S|\d+M(?:\d+S)?|\d+H(?:\d+M(?:\d+S)?)?))`
	case "email", "idn-email":
		return atom + `(?:\.` + atom + `)*@` + host
	case "hostname", "idn-hostname":
		return host
	case "ipv4":
		return ipv4
	case "ipv6":
		return `(?:` + hex16 + `:){7}` + hex16 + `|::|(?:` + hex16 + `:){1,6}:` + hex16
	case "uuid":
		return `[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}`
	}
	return formatsOfPaths(name, host, path, query, step)
}

func formatsOfPaths(name, host, path, query, step string) string {
	switch name {
	case "uri", "iri":
		return `[A-Za-z][A-Za-z0-9+.-]*:(?://` + host + `(?::\d{1,5})?(?:/` + path + `)?|[A-Za-z0-9._~+@-]` + path + `)` + query
	case "uri-reference", "iri-reference":
		return `(?:https?://` + host + `(?:/` + path + `)?|/?[A-Za-z0-9._~+-]*(?:/` + path + `)?)` + query
	case "uri-template":
		return `(?:[A-Za-z0-9._~/:?&=-]|\{[A-Za-z0-9_]+\})*`
	case "json-pointer":
		return step
	case "relative-json-pointer":
		return `(?:0|[1-9]\d*)(?:#|` + step + `)`
	case "regex":
		return `\^?[A-Za-z0-9 _-]*\$?`
	}
	return ""
}

// format returns the language of a format, or nil of one that is not known: those say nothing of a value.
func (c *compiler) format(name string) (*lang.DFA, error) {
	expr := formats(name)
	if expr == "" {
		return nil, nil
	}
	return c.full(expr)
}
