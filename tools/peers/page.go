package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
)

// pageOf is a page that a browser can see. Its length may vary by a tenth,
// because pages show times and are compressed.
func pageOf(ctx context.Context, b *browser, name, origin, path, text string) (c candidate, err error) {
	seen, err := b.get(ctx, origin+path)
	if err != nil {
		return c, err
	}
	if !strings.Contains(seen, text) {
		return c, fmt.Errorf("%s%s does not show %q", origin, path, text)
	}
	cookies, err := b.cookies(origin + path)
	if err != nil {
		return c, err
	}
	c = candidate{Name: name, network: "tcp", address: b.address, request: rawRequest(origin, path, navigation, cookies)}
	first, err := c.once(ctx)
	if err != nil {
		return c, err
	}
	c.length, c.tolerance = first.length, first.length/10
	return c, nil
}

// once sends the request once.
func (c candidate) once(ctx context.Context) (a answer, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, c.network, c.address)
	if err != nil {
		return a, err
	}
	defer conn.Close()
	if _, err := conn.Write(c.request); err != nil {
		return a, err
	}
	return readAnswer(bufio.NewReader(conn))
}
