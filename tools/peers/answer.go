package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// answer is what is checked of each response.
type answer struct{ status, length int }

// readAnswer reads one response and drops its body. It does what net/http would,
// for a small part of the processor time: the load generator must not be what
// limits a measurement. The connection must stay open afterwards.
func readAnswer(r *bufio.Reader) (a answer, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return a, err
	}
	if len(line) < 13 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return a, fmt.Errorf("not a response: %q", line)
	}
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return a, err
	}
	length, err := readHeader(r)
	switch {
	case err != nil:
		return a, err
	case length == chunked:
		a.length, err = discardChunks(r)
	default:
		a.length, err = r.Discard(length)
	}
	return a, err
}

// chunked stands for the length of a body that is sent in chunks.
const chunked = -1

// readHeader reads a header and returns the length of the body.
func readHeader(r *bufio.Reader) (length int, err error) {
	known := false
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case len(name) == 0 && !known:
			return 0, errors.New("the response does not tell its length")
		case len(name) == 0:
			return length, nil
		case bytes.EqualFold(name, []byte("Content-Length")):
			known = true
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 {
				return 0, fmt.Errorf("Content-Length is %q", value)
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			known, length = true, chunked
		case bytes.EqualFold(name, []byte("Connection")) && bytes.EqualFold(value, []byte("close")):
			return 0, errors.New("the server closes the connection")
		}
	}
}

// discardChunks drops a body in chunks and returns its length.
func discardChunks(r *bufio.Reader) (total int, err error) {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return total, err
		}
		size, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 32)
		if err != nil || size < 0 {
			return total, fmt.Errorf("the size of a chunk is %q", line)
		}
		if _, err := r.Discard(int(size)); err != nil {
			return total, err
		}
		total += int(size)
		end, err := r.ReadSlice('\n')
		if err != nil {
			return total, err
		}
		if len(bytes.TrimSpace(end)) > 0 {
			return total, io.ErrUnexpectedEOF
		}
		if size == 0 {
			return total, nil
		}
	}
}
