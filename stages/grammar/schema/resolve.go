package schema

import (
	"fmt"
	"strconv"
	"strings"
)

// index finds what references mean: schemas by address and anchor, and the address that each schema stands under.
type index struct {
	roots   map[string]*value // by address, without fragment
	anchors map[string]*value // by address#name
	base    map[*value]string
	old     bool // an $id beside $ref is none
	bytes   int  // of all addresses
	err     error
}

const (
	mostAddress   = 1 << 10 // bytes of one
	mostAddresses = 1 << 20 // bytes of all that a schema has
)

// holder says whether the fields of a keyword are schemas by name.
func holder(key string) bool {
	switch key {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
		return true
	}
	return false
}

func newIndex(root *value, old bool) (*index, error) {
	x := &index{old: old, roots: map[string]*value{"": root}, anchors: map[string]*value{}, base: map[*value]string{}}
	x.walk(root, "", true)
	return x, x.err
}

// address resolves a reference, and sees to it that addresses stay small: each is joined with all that are below it.
func (x *index) address(base, ref string) string {
	bytes := len(base) + len(ref)
	if x.bytes += bytes; (bytes > mostAddress || x.bytes > mostAddresses) && x.err == nil {
		x.err = fmt.Errorf("$id and $anchor: an address of more than %d bytes, or all together of more than %d",
			mostAddress, mostAddresses)
	}
	if x.err != nil {
		return ""
	}
	return join(base, ref)
}

// walk notes the addresses below v; schema says that v's keys are keywords.
func (x *index) walk(v *value, base string, schema bool) {
	if schema && v.kind == isObject {
		base = x.identify(v, base)
	}
	if v.kind == isObject {
		x.base[v] = base
	}
	for _, e := range v.list {
		x.walk(e, base, true)
	}
	for _, k := range v.keys {
		switch {
		case schema && (k == "enum" || k == "const" || k == "default" || k == "examples"):
		default:
			x.walk(v.fields[k], base, !schema || !holder(k))
		}
	}
}

// identify reads $id and anchors.
func (x *index) identify(v *value, base string) string {
	id := v.get("$id")
	if id == nil {
		id = v.get("id") // draft 4
	}
	if id != nil && id.kind == isString && !(x.old && v.get("$ref") != nil) {
		address, fragment, _ := strings.Cut(x.address(base, id.text), "#")
		if fragment != "" { // an anchor of drafts before 2019
			x.anchors[address+"#"+fragment] = v
		}
		if !strings.HasPrefix(id.text, "#") {
			base = address
			x.roots[base] = v
		}
	}
	for _, k := range [...]string{"$anchor", "$dynamicAnchor"} {
		if a := v.get(k); a != nil && a.kind == isString {
			x.anchors[x.address(base, "#"+a.text)] = v
		}
	}
	return base
}

// find returns the schema that a reference in v means.
func (x *index) find(v *value, ref string) (*value, error) {
	address, fragment, _ := strings.Cut(join(x.base[v], ref), "#")
	root := x.roots[address]
	if root == nil {
		return nil, fmt.Errorf("$ref %q leads outside of the schema: write what it means under $defs", shown(ref))
	}
	fragment = unescape(fragment)
	if fragment != "" && fragment[0] != '/' {
		if a := x.anchors[address+"#"+fragment]; a != nil {
			return a, nil
		}
		return nil, fmt.Errorf("$ref %q: there is no $anchor of that name", shown(ref))
	}
	at := root
	for _, part := range strings.Split(fragment, "/")[min(1, len(fragment)):] {
		if fragment == "" {
			break
		}
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		next := at.get(part)
		if at.kind == isArray {
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(at.list) {
				next = at.list[i]
			}
		}
		if next == nil {
			return nil, fmt.Errorf("$ref %q: there is no %q on the way", shown(ref), shown(part))
		}
		at = next
	}
	return at, nil
}

// unescape undoes %-escapes, and leaves what is none.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// join resolves a reference against an address. Source: RFC 3986, section 5.2, without .. on the way.
func join(base, ref string) string {
	scheme := strings.IndexByte(ref, ':')
	if scheme > 0 && !strings.ContainsAny(ref[:scheme], "/#?") || base == "" {
		return ref
	}
	switch {
	case ref == "":
		return base
	case ref[0] == '#':
		return base + ref
	case ref[0] == '/':
		host := strings.Index(base, "://")
		if host < 0 {
			return ref
		}
		if slash := strings.IndexByte(base[host+3:], '/'); slash >= 0 {
			return base[:host+3+slash] + ref
		}
		return base + ref
	}
	if strings.HasPrefix(base, "urn:") {
		return ref
	}
	return base[:strings.LastIndexByte(base, '/')+1] + strings.TrimPrefix(ref, "./")
}
