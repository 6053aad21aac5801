package web

func docsSamples() []sample {
	return []sample{
		{"docs", "/docs/how-to/tls", nil, DocsPage(sampleDocs())},
		{"docs-found", "/docs?q=tls", &li, DocsPage(DocsView{Title: "Search: tls", Query: "tls", Groups: sampleDocs().Groups, Hits: []DocsHit{{"Serve it over TLS", "nginx", "en", "/docs/how-to/tls#nginx", "…proxy_pass…"}}})},
		{"docs-not-found", "/docs?q=zebra", nil, DocsPage(DocsView{Title: "Search: zebra", Query: "zebra"})},
	}
}

func sampleDocs() DocsView {
	return DocsView{Name: "how-to/tls", Title: "Serve it over TLS", Lang: "en", HTML: `<h1 id="a">Serve it over TLS</h1><p>Text.</p>`,
		Groups: []DocsGroup{{"Start", []DocsLink{{"教程", "zh", "/docs/tutorial/engineer"}}}, {"How to", []DocsLink{{"Serve it over TLS", "en", "/docs/how-to/tls"}}}}}
}
