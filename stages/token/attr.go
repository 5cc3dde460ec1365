package token

// attr is a set of a token's properties: llama.cpp turns some ordinary tokens into control tokens by their text, and
// they stay ordinary as well.
type attr uint16

const (
	unknown     attr = 1 << iota // stands for what the vocabulary cannot express
	unused                       // fills a hole in the numbering
	normal                       // text
	control                      // structure; text must not forge it
	userDefined                  // text that is never cut
	byteToken                    // one byte, spelt <0xNN>
	guarded                      // control in the file, shown as text: parsed only where control tokens are
	leftStrip                    // takes the white space before it along
	rightStrip                   // takes the white space after it along
)

// attrOf translates tokenizer.ggml.token_type.
func attrOf(kind int64) attr {
	switch kind {
	case 1:
		return normal
	case 2:
		return unknown
	case 3:
		return control
	case 4:
		return userDefined
	case 5:
		return unused
	case 6:
		return byteToken
	}
	return 0
}
