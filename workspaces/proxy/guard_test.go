package proxy

import (
	"net/http"
	"testing"
)

func TestCrossSite(t *testing.T) {
	w := newWorld(t, hello)
	socket := []string{"Upgrade: websocket", "Connection: Upgrade"}
	for _, c := range []struct {
		name    string
		method  string
		headers []string
		ok      bool
	}{
		{"own script", "GET", []string{"Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors"}, true},
		{"no browser", "GET", nil, true},
		{"typed address", "GET", []string{"Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate"}, true},
		{"link elsewhere", "GET", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}, true},
		{"link at the portal", "GET", []string{"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: navigate"}, true},
		{"sibling's image", "GET", []string{"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors"}, false},
		{"sibling's fetch", "GET", []string{"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: cors", "Origin: " + sibling}, false},
		{"sibling's fetch, old browser", "GET", []string{"Origin: " + sibling, asBrowser}, false},
		{"sibling's image, with this origin", "GET", []string{"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors", "Origin: " + own}, false},
		{"elsewhere's script", "GET", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, false},

		{"own write", "POST", []string{"Sec-Fetch-Site: same-origin", "Origin: " + own}, true},
		{"own write, old browser", "PUT", []string{"Origin: " + own}, true},
		{"program's write", "DELETE", nil, true},
		{"sibling's write", "POST", []string{"Sec-Fetch-Site: same-site", "Origin: " + sibling}, false},
		{"sibling's form", "POST", []string{"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: navigate", "Origin: " + sibling, asBrowser}, false},
		{"write without origin", "POST", []string{"Sec-Fetch-Site: cross-site"}, false},
		{"portal's write", "POST", []string{"Origin: " + portal}, false},
		{"null origin", "POST", []string{"Origin: null"}, false},
		{"origin with another scheme", "POST", []string{"Origin: https://ws-12.localhost:8080"}, false},
		{"origin with another port", "POST", []string{"Origin: http://ws-12.localhost:8081"}, false},
		{"origin as a prefix", "POST", []string{"Origin: " + own + ".evil.example"}, false},
		{"origin in capitals", "POST", []string{"Origin: http://WS-12.localhost:8080"}, false},
		{"two origins", "POST", []string{"Origin: " + own, "Origin: " + sibling}, false},

		{"own socket", "GET", append(socket, "Origin: "+own), true},
		{"own socket, new browser", "GET", append(socket, "Origin: "+own, "Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: websocket"), true},
		{"socket without origin", "GET", socket, false},
		{"socket without origin, of this site", "GET", append(socket, "Sec-Fetch-Site: same-origin"), false},
		{"own origin, sibling's socket", "GET", append(socket, "Origin: "+own, "Sec-Fetch-Site: same-site"), false},
		{"sibling's socket", "GET", append(socket, "Origin: "+sibling), false},
		{"socket as navigation", "GET", append(socket, "Origin: "+sibling, "Sec-Fetch-Mode: navigate"), false},
		{"socket without connection", "GET", []string{"Upgrade: WebSocket", "Origin: " + sibling}, false},
	} {
		res, _ := w.do(t, request(t, c.method, "/", nil, append(c.headers, asOwner)...))
		want := http.StatusOK
		if !c.ok {
			want = http.StatusForbidden
		}
		if res.StatusCode != want {
			t.Errorf("%s: %d", c.name, res.StatusCode)
		}
		// No other site can make a browser send a token: it is always meant.
		if res, _ := w.do(t, request(t, c.method, "/", nil, append(c.headers, asProgram)...)); res.StatusCode != http.StatusOK {
			t.Errorf("%s, with a token: %d", c.name, res.StatusCode)
		}
	}
}
