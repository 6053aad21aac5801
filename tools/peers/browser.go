package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
)

// What Chromium sends with every request to a site on this machine.
const everyRequest = `Connection: keep-alive
sec-ch-ua: "Chromium";v="142", "Not_A Brand";v="99"
sec-ch-ua-mobile: ?0
sec-ch-ua-platform: "Linux"
User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36
Accept-Encoding: gzip, deflate, br, zstd
Accept-Language: en-US,en;q=0.9
`

// What it sends when a link is followed, and when a script of JupyterLab asks.
const (
	navigation = everyRequest + `Upgrade-Insecure-Requests: 1
Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,` +
		`application/signed-exchange;v=b3;q=0.7
Sec-Fetch-Site: same-origin
Sec-Fetch-Mode: navigate
Sec-Fetch-User: ?1
Sec-Fetch-Dest: document
`
	script = everyRequest + `Accept: */*
Content-Type: application/json
Sec-Fetch-Site: same-origin
Sec-Fetch-Mode: cors
Sec-Fetch-Dest: empty
X-XSRFToken: ` + xsrf + "\n"
)

// xsrf and notebookCookies are what Jupyter itself has set.
const (
	xsrf            = "2|8d1fc1f2|0f1cb4f8ae3a54b1ef9a2f50cf2d1a3e|1764150000"
	notebookCookies = "_xsrf=" + xsrf + `; username-localhost-8888="2|1:0|10:1764150000|23:username-localhost-8888|` +
		`44:ZTRiNmMxYTg0ZjI5NGM3Y2E5NWQ0YzU0OTU1NmE1ZTE=|0e0c1b0a5f6c7d8e9fa0b1c2d3e4f5061728394a5b6c7d8e9fa0b1c2d3e4f506"`
)

// rawRequest is a GET request as it is sent. Further header fields are given as
// "Name: value"; empty ones are left out.
func rawRequest(origin, path, fields string, more ...string) []byte {
	host := strings.TrimPrefix(origin, "http://")
	var b bytes.Buffer
	fmt.Fprintf(&b, "GET %s HTTP/1.1\nHost: %s\n%sReferer: %s/\n", path, host, fields, origin)
	for _, field := range more {
		if field != "" {
			b.WriteString(field + "\n")
		}
	}
	b.WriteString("\n")
	return bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte("\r\n"))
}

// browser signs in and visits pages as a person would, and keeps the cookies.
type browser struct {
	http.Client
	address string
}

// newBrowser returns a browser that finds every name at one address, as browsers
// find names below localhost.
func newBrowser(address string) (*browser, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}}
	return &browser{http.Client{Jar: jar, Transport: transport}, address}, nil
}

// get fetches a page and returns its text.
func (b *browser) get(ctx context.Context, url string) (text string, err error) {
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return "", err
	}
	return b.read(req)
}

// post submits a form.
func (b *browser) post(ctx context.Context, target string, form url.Values) error {
	req, err := http.NewRequestWithContext(ctx, "POST", target, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	_, err = b.read(req)
	return err
}

func (b *browser) read(req *http.Request) (text string, err error) {
	res, err := b.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s %.500s", req.Method, req.URL, res.Status, body)
	}
	return string(body), err
}

// cookies is the field with the cookies for a URL.
func (b *browser) cookies(target string, others ...string) (string, error) {
	u, err := url.Parse(target)
	if err != nil {
		return "", err
	}
	pairs := others
	for _, c := range b.Jar.Cookies(u) {
		pairs = append(pairs, c.String())
	}
	return "Cookie: " + strings.Join(pairs, "; "), nil
}

// api calls Weir's REST API with an access token.
type api struct{ base, token string }

func (a api) call(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s %s", method, path, res.Status, answer)
	case out != nil:
		return json.Unmarshal(answer, out)
	}
	return nil
}
