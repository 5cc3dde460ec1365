package kvevents

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/kv"
)

// Types of MessagePack, as their first byte has them, for what batches are made of.
const (
	asNil     = 0xc0
	asFloat64 = 0xcb
	asUint64  = 0xcf
	asUint32  = 0xce
	asArray   = 0x90 // of up to 15
	asArray32 = 0xdd
	asText    = 0xa0 // of up to 31 bytes
)

// media are vLLM's names of where blocks lie, by tier.
var media = [kv.Tiers]string{kv.Device: "GPU", kv.Host: "CPU", kv.Disk: "STORAGE"}

// encode writes news as a batch of events: an array of the time in seconds and the events, each an array that begins
// with its name. Blocks that follow one another in a text are one event.
func encode(all []kv.News, at time.Time) []byte {
	var events []byte
	count := 0
	for len(all) > 0 {
		n := 1
		for n < len(all) && together(&all[n-1], &all[n]) {
			n++
		}
		events = appendEvent(events, all[:n])
		all, count = all[n:], count+1
	}
	b := append(make([]byte, 0, len(events)+16), asArray|2, asFloat64)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(float64(at.UnixMicro())/1e6))
	return append(appendArray(b, count), events...)
}

// together says whether news and those before them are of one event.
func together(before, n *kv.News) bool {
	if n.Kind != before.Kind || n.Kind == kv.Cleared || n.Tier != before.Tier {
		return false
	}
	return n.Kind == kv.Removed || !n.First && n.Parent == before.Key
}

func appendEvent(b []byte, all []kv.News) []byte {
	medium := media[all[0].Tier]
	switch all[0].Kind {
	case kv.Stored: // hashes, parent's hash, tokens, tokens of a block, number of an adapter, medium, name of an adapter
		b = appendHashes(appendText(append(b, asArray|8), "BlockStored"), all)
		if all[0].First {
			b = append(b, asNil)
		} else {
			b = appendHash(b, all[0].Parent)
		}
		b = appendArray(b, len(all)*backend.BlockSize)
		for i := range all {
			for _, id := range all[i].Tokens {
				b = appendNumber(b, uint32(id)) // they are not below 0
			}
		}
		return append(appendText(append(appendNumber(b, backend.BlockSize), asNil), medium), asNil)
	case kv.Removed: // hashes, medium
		return appendText(appendHashes(appendText(append(b, asArray|3), "BlockRemoved"), all), medium)
	default:
		return appendText(append(b, asArray|1), "AllBlocksCleared")
	}
}

func appendHashes(b []byte, all []kv.News) []byte {
	b = appendArray(b, len(all))
	for i := range all {
		b = appendHash(b, all[i].Key)
	}
	return b
}

// appendHash writes the end of a key, since routers keep 64 bits of it.
func appendHash(b []byte, key kv.Key) []byte { return append(append(b, asUint64), key[len(key)-8:]...) }

func appendArray(b []byte, n int) []byte {
	if n < 16 {
		return append(b, asArray|byte(n))
	}
	return binary.BigEndian.AppendUint32(append(b, asArray32), uint32(n))
}

func appendNumber(b []byte, n uint32) []byte {
	if n < 128 {
		return append(b, byte(n))
	}
	return binary.BigEndian.AppendUint32(append(b, asUint32), n)
}

// appendText writes one of the names above, all of which are short.
func appendText(b []byte, s string) []byte { return append(append(b, asText|byte(len(s))), s...) }
