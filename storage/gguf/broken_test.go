package gguf

import (
	"encoding/binary"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/quant"
)

// raw is a file spelled out field by field, so that a test can break one of them.
type raw struct {
	magic   string
	version uint32
	counts  [2]uint64 // tensors, keys; added to the true numbers
	keys    []rawKey
	tensors []rawTensor
	cut     int // bytes removed from the end
	order   binary.AppendByteOrder
}

type rawKey struct {
	name  string
	kind  kind
	value []byte
}

type rawTensor struct {
	name       string
	dimensions []uint64
	typ        uint32
	offset     uint64
}

// good is a file of three keys and two tensors, 64 and 36 bytes long.
func good() *raw {
	return &raw{
		magic: "GGUF", version: 3, order: binary.LittleEndian,
		keys: []rawKey{
			{"general.architecture", kindString, text("llama")},
			{"general.alignment", kindUint32, u32(32)},
			{"tokens", kindArray, slices.Concat(u32(uint32(kindString)), u64(2), text("a"), text("\xff"))},
		},
		tensors: []rawTensor{
			{"token_embd.weight", []uint64{8, 2}, uint32(quant.F32), 0},
			{"blk.0.attn_q.weight", []uint64{32, 2}, uint32(quant.Q4_0), 64},
		},
	}
}

func u32(v uint32) []byte  { return binary.LittleEndian.AppendUint32(nil, v) }
func u64(v uint64) []byte  { return binary.LittleEndian.AppendUint64(nil, v) }
func text(s string) []byte { return appendText(nil, s) }

func (r *raw) bytes() []byte {
	b := r.order.AppendUint32([]byte(r.magic), r.version)
	b = r.order.AppendUint64(b, uint64(len(r.tensors))+r.counts[0])
	b = r.order.AppendUint64(b, uint64(len(r.keys))+r.counts[1])
	for _, k := range r.keys {
		b = slices.Concat(b, text(k.name), u32(uint32(k.kind)), k.value)
	}
	for _, t := range r.tensors {
		b = slices.Concat(b, text(t.name), u32(uint32(len(t.dimensions))))
		for _, n := range t.dimensions {
			b = r.order.AppendUint64(b, n)
		}
		b = slices.Concat(b, u32(t.typ), u64(t.offset))
	}
	b = append(b, make([]byte, (len(b)+31)&^31-len(b)+100)...)
	return b[:len(b)-r.cut]
}

// broken breaks one thing in a good file; want is the whole text that a user sees.
var broken = []struct {
	name string
	edit func(*raw)
	want string
}{
	{"empty", func(r *raw) { r.cut = len(r.bytes()) },
		`m.gguf: the file is empty, want a GGUF model: download it again`},
	{"magic", func(r *raw) { r.magic = "PK\x03\x04" },
		`m.gguf: byte 0: magic is "PK\x03\x04", want "GGUF": this is not a GGUF file`},
	{"magic in lower case", func(r *raw) { r.magic = "gguf" },
		`m.gguf: byte 0: magic is "gguf", want "GGUF": this is not a GGUF file`},
	{"old magic", func(r *raw) { r.magic = "GGML" },
		`m.gguf: byte 0: magic is "GGML", want "GGUF": this is an older format, convert the model again`},
	{"web page", func(r *raw) { r.magic = "<!do" },
		`m.gguf: byte 0: magic is "<!do", want "GGUF": this is a web page that was saved in place of the model, download it again`},
	{"git's pointer", func(r *raw) { r.magic = "vers" },
		`m.gguf: byte 0: magic is "vers", want "GGUF": this may be git's note of where the model lies: git lfs pull, or download it again`},
	{"version 1", func(r *raw) { r.version = 1 },
		`m.gguf: byte 4: version is 1, want 2 or 3: convert the model again, or update this program`},
	{"version 4", func(r *raw) { r.version = 4 },
		`m.gguf: byte 4: version is 4, want 2 or 3: convert the model again, or update this program`},
	{"big-endian", func(r *raw) { r.order = binary.BigEndian },
		`m.gguf: byte 4: version is 3 in big-endian byte order, want little-endian: ` +
			`convert the model again for little-endian machines`},
	{"too many tensors", func(r *raw) { r.counts[0] = 1 << 60 },
		`m.gguf: number of tensors at byte 8 is 1152921504606846978, the 372 bytes after it hold at most 11: ` +
			`the file is damaged or incomplete, download it again`},
	{"too many keys", func(r *raw) { r.counts[1] = 1 << 60 },
		`m.gguf: number of metadata keys at byte 16 is 1152921504606846979, the 364 bytes after it hold at most 28: ` +
			`the file is damaged or incomplete, download it again`},
	{"key not UTF-8", func(r *raw) { r.keys[1].name = "general.\xfe" },
		`m.gguf: key 1 of 3: name at byte 69 is "general.\xfe", want UTF-8: the file is damaged, download it again`},
	{"key empty", func(r *raw) { r.keys[1].name = "" },
		`m.gguf: key 1 of 3: name at byte 69 is empty: the file is damaged, download it again`},
	{"key too long", func(r *raw) { r.keys[1].name = strings.Repeat("k", 1<<16) },
		`m.gguf: key 1 of 3: name at byte 69 has 65536 bytes, want at most 65535: the file is damaged, download it again`},
	{"duplicate key", func(r *raw) { r.keys[1].name = r.keys[0].name },
		`m.gguf: key "general.architecture": appears twice in the metadata: convert the model again`},
	{"text longer than the file", func(r *raw) { r.keys[0].value = u64(1 << 63) },
		`m.gguf: key "general.architecture": text: needs 9223372036854775808 bytes at byte 64, ` +
			`the file has 324 left: is the download complete?`},
	{"unknown value type", func(r *raw) { r.keys[0].kind = 13 },
		`m.gguf: key "general.architecture": value type at byte 52 is 13, want 0 to 12: ` +
			`the file is damaged or newer than this program`},
	{"truth value", func(r *raw) { r.keys[0] = rawKey{"b", kindBool, []byte{2}} },
		`m.gguf: key "b": truth value at byte 37 is 2, want 0 or 1: the file is damaged, download it again`},
	{"truth value in an array", func(r *raw) {
		r.keys[2].value = slices.Concat(u32(uint32(kindBool)), u64(2), []byte{1, 7})
	}, `m.gguf: key "tokens": truth value at byte 133 is 7, want 0 or 1: the file is damaged, download it again`},
	{"nested array", func(r *raw) {
		r.keys[2].value = slices.Concat(u32(uint32(kindArray)), u64(1), u32(uint32(kindUint8)), u64(0))
	}, `m.gguf: key "tokens": element type at byte 120 is array, want numbers, truth values or texts: ` +
		`nested arrays are not supported, convert the model without this key`},
	{"unknown element type", func(r *raw) { r.keys[2].value = slices.Concat(u32(99), u64(0)) },
		`m.gguf: key "tokens": element type at byte 120 is 99, want 0 to 12: ` +
			`the file is damaged or newer than this program`},
	{"array longer than the file", func(r *raw) { copy(r.keys[2].value[4:], u64(1<<61)) },
		`m.gguf: key "tokens": array length at byte 124 is 2305843009213693952, the 256 bytes after it hold at most 32: ` +
			`the file is damaged or incomplete, download it again`},
	{"array text longer than the file", func(r *raw) { copy(r.keys[2].value[21:], u64(1<<40)) },
		`m.gguf: key "tokens": element 1 of 2: text: needs 1099511627776 bytes at byte 149, ` +
			`the file has 239 left: is the download complete?`},
	{"alignment zero", func(r *raw) { r.keys[1].value = u32(0) },
		`m.gguf: key "general.alignment": alignment is 0, want a power of two below 2^32: convert the model again`},
	{"alignment 24", func(r *raw) { r.keys[1].value = u32(24) },
		`m.gguf: key "general.alignment": alignment is 24, want a power of two below 2^32: convert the model again`},
	{"alignment beyond the file", func(r *raw) { r.keys[1].value = u32(1 << 31); r.tensors[1].offset = 1 << 31 },
		`m.gguf: tensor "token_embd.weight": needs bytes up to 2147483712, the file has 388: is the download complete?`},
	{"alignment a text", func(r *raw) { r.keys[1] = rawKey{"general.alignment", kindString, text("32")} },
		`m.gguf: key general.alignment: is of type string, want an integer`},
	{"tensor name not UTF-8", func(r *raw) { r.tensors[0].name = "\xc3" },
		`m.gguf: tensor 0 of 2: name at byte 150 is "\xc3", want UTF-8: the file is damaged, download it again`},
	{"duplicate tensor", func(r *raw) { r.tensors[1].name = r.tensors[0].name },
		`m.gguf: tensor "token_embd.weight": appears twice in the directory: convert the model again`},
	{"no dimensions", func(r *raw) { r.tensors[0].dimensions = nil },
		`m.gguf: tensor "token_embd.weight": has 0 dimensions, want 1 to 4: the file is damaged, download it again`},
	{"five dimensions", func(r *raw) { r.tensors[0].dimensions = []uint64{1, 1, 1, 1, 1} },
		`m.gguf: tensor "token_embd.weight": has 5 dimensions, want 1 to 4: the file is damaged, download it again`},
	{"dimension zero", func(r *raw) { r.tensors[0].dimensions[1] = 0 },
		`m.gguf: tensor "token_embd.weight": dimension 1 is 0, want 1 to 9223372036854775807: ` +
			`the file is damaged, download it again`},
	{"dimension negative", func(r *raw) { r.tensors[0].dimensions[1] = 1 << 63 },
		`m.gguf: tensor "token_embd.weight": dimension 1 is 9223372036854775808, want 1 to 9223372036854775807: ` +
			`the file is damaged, download it again`},
	{"shape overflows", func(r *raw) { r.tensors[0].dimensions = []uint64{1 << 30, 1 << 30, 1 << 30} },
		`m.gguf: tensor "token_embd.weight": shape [1073741824 1073741824 1073741824] takes more bytes than any file has: ` +
			`the file is damaged, download it again`},
	{"row overflows", func(r *raw) { r.tensors[0].dimensions = []uint64{1 << 62} },
		`m.gguf: tensor "token_embd.weight": row of 4611686018427387904 values: ` +
			`F32: 4611686018427387904 values need more bytes than this machine can address: convert the model again`},
	{"removed type", func(r *raw) { r.tensors[0].typ = 31 },
		`m.gguf: tensor "token_embd.weight": is of type 31, which this program does not know: ` +
			`update it, or convert the model again`},
	{"part of a block", func(r *raw) { r.tensors[1].dimensions[0] = 33 },
		`m.gguf: tensor "blk.0.attn_q.weight": row of 33 values: ` +
			`Q4_0 comes in blocks of 32 values, and 33 is not a multiple of it: convert the model again`},
	{"offset not aligned", func(r *raw) { r.tensors[1].offset = 65 },
		`m.gguf: tensor "blk.0.attn_q.weight": offset 65 is not a multiple of the alignment 32: convert the model again`},
	{"offset overflows", func(r *raw) { r.tensors[1].offset = 1<<64 - 32 },
		`m.gguf: tensor "blk.0.attn_q.weight": offset is 18446744073709551584, beyond any file: ` +
			`the file is damaged, download it again`},
	{"tensor past the end", func(r *raw) { r.tensors[1].offset = 1 << 40 },
		`m.gguf: tensor "blk.0.attn_q.weight": needs bytes up to 1099511628100, the file has 388: is the download complete?`},
	{"last byte missing", func(r *raw) { r.cut = 1 },
		`m.gguf: tensor "blk.0.attn_q.weight": needs bytes up to 388, the file has 387: is the download complete?`},
	{"tensors overlap", func(r *raw) { r.tensors[1].offset = 32 },
		`m.gguf: tensor "blk.0.attn_q.weight": starts at byte 320 inside tensor "token_embd.weight", ` +
			`which ends at byte 352: convert the model again`},
	{"tensors overlap by a byte", func(r *raw) { r.keys[1].value = u32(1); r.tensors[1].offset = 63 },
		`m.gguf: tensor "blk.0.attn_q.weight": starts at byte 329 inside tensor "token_embd.weight", ` +
			`which ends at byte 330: convert the model again`},
	{"split in memory", func(r *raw) { r.keys[0] = rawKey{"split.count", kindUint16, []byte{3, 0}} },
		`m.gguf: key "split.count" is 3: a split model cannot be read from memory, merge its parts into one file`},
}

func TestBrokenFiles(t *testing.T) {
	f, err := Parse("m.gguf", good().bytes())
	require.NoError(t, err)
	require.Len(t, f.Tensors, 2)
	for _, c := range broken {
		t.Run(c.name, func(t *testing.T) {
			r := good()
			c.edit(r)
			_, err := Parse("m.gguf", r.bytes())
			require.EqualError(t, err, c.want)
		})
	}
}

// TestCutAnywhere cuts a good file at every byte: no cut may pass, none may panic.
func TestCutAnywhere(t *testing.T) {
	whole := good().bytes()
	for n := range whole {
		_, err := Parse("m.gguf", whole[:n:n])
		require.Error(t, err, "cut at byte %d", n)
	}
}

// TestHostileCountsAllocateLittle gives a small file whose counts promise far more than it holds.
func TestHostileCountsAllocateLittle(t *testing.T) {
	for _, c := range broken {
		r := good()
		c.edit(r)
		b := r.bytes()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse("m.gguf", b)
		runtime.ReadMemStats(&after)
		require.Error(t, err, c.name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<10+8*len(b)), c.name)
	}
}
