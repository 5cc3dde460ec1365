package actors

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/sluice-ai/sluice/internal/safefile"
)

// incoming is a file that is read while it comes: who reads waits for the bytes. It vanishes with Close.
type incoming struct {
	file *safefile.File
	from io.ReadCloser

	mu    sync.Mutex
	news  sync.Cond
	have  int64
	ended error // why no more come; nil: they do
	done  chan struct{}
}

// receive begins a file beside path of what comes, which is closed with it.
func receive(path string, from io.ReadCloser) (*incoming, error) {
	file, err := safefile.Scratch(path)
	if err != nil {
		return nil, errors.Join(err, from.Close())
	}
	in := &incoming{file: file, from: from, done: make(chan struct{})}
	in.news.L = &in.mu
	go in.fill()
	return in, nil
}

func (in *incoming) fill() {
	defer close(in.done)
	for buffer := make([]byte, 256<<10); ; {
		n, err := in.from.Read(buffer)
		if _, failed := in.file.Write(buffer[:n]); failed != nil {
			err, n = failed, 0
		}
		in.mu.Lock()
		in.have, in.ended = in.have+int64(n), err
		in.news.Broadcast()
		in.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// ReadAt waits until the bytes have come.
func (in *incoming) ReadAt(b []byte, at int64) (int, error) {
	in.mu.Lock()
	for in.have < at+int64(len(b)) && in.ended == nil {
		in.news.Wait()
	}
	have, ended := in.have, in.ended
	in.mu.Unlock()
	switch end := at + int64(len(b)); {
	case have >= end:
		return in.file.ReadAt(b, at)
	case errors.Is(ended, io.EOF):
		return 0, io.ErrUnexpectedEOF
	default:
		return 0, fmt.Errorf("%d bytes came: %w", have, ended)
	}
}

// Close ends what comes.
func (in *incoming) Close() error {
	err := in.from.Close()
	<-in.done
	return errors.Join(err, in.file.Close())
}
