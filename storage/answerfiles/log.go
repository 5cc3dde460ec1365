package answerfiles

// Log collects records of one answer until they are written. Tokens that follow each other share a record.
type Log struct {
	records []byte
	tokens  []byte
}

// Len is how many bytes wait.
func (l *Log) Len() int { return len(l.records) + len(l.tokens) }

// Take returns the records so far, and forgets them.
func (l *Log) Take() []byte {
	l.settle()
	all := l.records
	l.records = nil
	return all
}

func (l *Log) settle() {
	if len(l.tokens) > 0 {
		l.records = appendRecord(l.records, drawn, l.tokens)
		l.tokens = l.tokens[:0]
	}
}

func (l *Log) add(k kind, payload []byte) {
	l.settle()
	l.records = appendRecord(l.records, k, payload)
}

// Begun adds what the answer follows from.
func (l *Log) Begun(b *Begun) { l.add(begun, appendJSON(nil, b)) }

// Token adds a drawn token.
func (l *Log) Token(t *Token) { l.tokens = appendToken(l.tokens, t) }

// Read adds the counts that a choice's client is told first.
func (l *Log) Read(c *Counts) { l.add(read, appendJSON(nil, c)) }

// Ended adds the end of a choice.
func (l *Log) Ended(e *End) { l.add(ended, appendJSON(nil, e)) }

// Told adds what can be asked for by the answer's id.
func (l *Log) Told(t *Told) { l.add(told, appendJSON(nil, t)) }

// Closed adds that the answer is whole, or why it never will be.
func (l *Log) Closed(failed string) { l.add(closed, []byte(failed)) }

// Resumed adds that the answer is gone on with.
func (l *Log) Resumed() { l.add(resumed, nil) }
