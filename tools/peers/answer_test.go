package main

import (
	"bufio"
	"strings"
	"testing"
)

func TestReadAnswer(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, c := range []struct {
		name, text string
		want       answer
		problem    string
	}{
		{"length", ok + "content-length: 5\r\nServer: x\r\n\r\nhello", answer{200, 5}, ""},
		{"status", "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", answer{503, 0}, ""},
		{"chunks", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n", answer{200, 31}, ""},
		{"cut off", ok + "Content-Length: 5\r\n\r\nhell", answer{200, 4}, "EOF"},
		{"cut off in a chunk", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhel", answer{200, 0}, "EOF"},
		{"chunk longer than it says", ok + "Transfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n", answer{200, 4}, "EOF"},
		{"chunk of a strange size", ok + "Transfer-Encoding: chunked\r\n\r\nx\r\n", answer{200, 0}, "size of a chunk"},
		{"no length", ok + "\r\nhello", answer{200, 0}, "does not tell its length"},
		{"negative length", ok + "Content-Length: -1\r\n\r\n", answer{200, 0}, "Content-Length"},
		{"close", ok + "Content-Length: 0\r\nConnection: close\r\n\r\n", answer{200, 0}, "closes the connection"},
		{"no HTTP", "SSH-2.0-OpenSSH_9.2\r\n", answer{}, "not a response"},
	} {
		in := bufio.NewReader(strings.NewReader(c.text + "next"))
		if c.problem == "EOF" {
			in = bufio.NewReader(strings.NewReader(c.text))
		}
		got, err := readAnswer(in)
		if got != c.want || (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %v, %v, want %v, %q", c.name, got, err, c.want, c.problem)
		}
		if rest, _ := in.Peek(4); c.problem == "" && string(rest) != "next" {
			t.Errorf("%s: then comes %q", c.name, rest)
		}
	}
}
