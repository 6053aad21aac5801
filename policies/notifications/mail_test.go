package notifications

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

// post is a real SMTP server.
type post struct {
	net.Listener
	tls       *tls.Config
	roots     *x509.CertPool
	immediate bool // TLS from the first byte

	mu       sync.Mutex
	hideTLS  bool
	refuse   string // what it answers to a recipient
	password string // that it wants; empty: none
	log      []string
	letters  []string
	open     sync.WaitGroup
}

func newPost(t testing.TB, immediate bool) *post {
	t.Helper()
	certified := httptest.NewTLSServer(nil) // for its certificate
	certified.Close()
	p := &post{immediate: immediate, tls: &tls.Config{Certificates: certified.TLS.Certificates}, roots: x509.NewCertPool()}
	p.roots.AddCert(certified.Certificate())
	var err error
	if p.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	p.open.Go(func() {
		for {
			conn, err := p.Accept()
			if err != nil {
				return
			}
			p.open.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() { p.Close(); p.open.Wait() })
	return p
}

func (p *post) mailer(user string) *Mailer {
	host, port, _ := net.SplitHostPort(p.Addr().String())
	return &Mailer{Host: host, Port: port, TLS: p.immediate, User: user, Password: "hunter2", Roots: p.roots,
		From: mail.Address{Name: "Weir, the pool", Address: "weir@example.org"}}
}

// serve holds one conversation as RFC 5321 has it.
func (p *post) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	secure := p.immediate
	if secure {
		conn = tls.Server(conn, p.tls)
	}
	c := textproto.NewConn(conn)
	say := func(line string) { _ = c.PrintfLine("%s", line) }
	say("220 post ready")
	for {
		line, err := c.ReadLine()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.log = append(p.log, line)
		hide, refuse, password := p.hideTLS, p.refuse, p.password
		p.mu.Unlock()
		verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
		switch verb {
		case "EHLO":
			say("250-post")
			if !secure && !hide {
				say("250-STARTTLS")
			}
			say("250 AUTH PLAIN")
		case "STARTTLS":
			say("220 go on")
			conn, secure = tls.Server(conn, p.tls), true
			c = textproto.NewConn(conn)
		case "AUTH":
			if raw, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(line, "AUTH PLAIN ")); string(raw) != "\x00weir\x00"+password {
				say("535 who are you")
				continue
			}
			say("235 welcome")
		case "RCPT":
			if refuse != "" {
				say(refuse)
				continue
			}
			say("250 good")
		case "DATA":
			say("354 go on")
			raw, err := io.ReadAll(c.DotReader())
			if err != nil {
				return
			}
			p.mu.Lock()
			p.letters = append(p.letters, string(raw))
			p.mu.Unlock()
			say("250 taken")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 good")
		}
	}
}

// read takes a letter apart as a reader's program does.
func read(t testing.TB, text string) (head mail.Header, subject, body string) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil {
		t.Fatal(err)
	}
	return m.Header, subject, string(raw)
}

func (w *world) mails(p *post, user string) {
	w.store.Mail = true
	w.sender.Mailer = p.mailer(user)
}

// Each who wants e-mail gets one, over TLS, in their language.
func TestMail(t *testing.T) {
	each(t, func(w *world) {
		for _, immediate := range []bool{false, true} {
			p := newPost(w, immediate)
			p.password = "hunter2"
			w.mails(p, "weir")
			if err := w.service.SetPreference(w.Context(), policies.Actor{User: w.ada}, true, "zh"); err != nil {
				w.Fatal(err)
			}
			if err := w.service.SetPreference(w.Context(), policies.Actor{User: w.ben}, false, "en"); err != nil {
				w.Fatal(err)
			}
			w.tellText("request.approved", models.Say("GPU cores"), w.ada.ID, w.ben.ID)
			w.settle(w.sender)
			d := w.deliveries()[0]
			if d.State != models.DeliveryDelivered || d.Status != 250 || d.UserEmail != "ada@example.org" || len(p.letters) != 1 {
				w.Fatalf("%+v; %d letters; %q", d, len(p.letters), p.log)
			}
			head, subject, body := read(w, p.letters[0])
			if subject != "Weir: GPU 核" || !strings.Contains(body, origin+"/projects/5\r\n") && !strings.Contains(body, origin+"/projects/5\n") || !strings.HasPrefix(body, "GPU 核") {
				w.Errorf("%q %q", subject, body)
			}
			if from, err := head.AddressList("From"); err != nil || from[0].Name != "Weir, the pool" || head.Get("To") != "<ada@example.org>" || head.Get("Message-ID") != "<"+d.Key+"@weir.example.org>" {
				w.Errorf("%v, %v", head, err)
			}
			if log := strings.Join(p.log, "\n"); !immediate && strings.Index(log, "STARTTLS") > strings.Index(log, "AUTH") {
				w.Errorf("said in the clear: %s", log)
			}
		}
	})
}

// An email has its times in the time zone of its reader.
func TestMailInATimeZone(t *testing.T) {
	each(t, func(w *world) {
		p := newPost(w, false)
		p.password = "hunter2"
		w.mails(p, "weir")
		if err := w.store.InTx(w.Context(), func(q *store.Queries) error {
			u, err := q.User(w.ada.ID)
			u.TimeZone = "Asia/Shanghai"
			return errors.Join(err, q.UpdateUser(&u))
		}); err != nil {
			w.Fatal(err)
		}
		stop := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
		w.tellText("workspace.idle", models.Say("The workspace %s is idle. It will be stopped on %s unless you use it or keep it running.", "a", models.Instant{At: stop}),
			w.ada.ID, w.ben.ID)
		w.settle(w.sender)
		found := map[string]bool{}
		for _, letter := range p.letters {
			head, _, body := read(w, letter)
			found[head.Get("To")+" "+strings.TrimSpace(body[strings.Index(body, " on ")+4:strings.Index(body, " unless")])] = true
		}
		for _, want := range []string{"<ada@example.org> 2026-11-29 08:00 UTC+08:00", "<ben@example.org> 2026-11-29 00:00 UTC"} {
			if !found[want] {
				w.Errorf("%v lack %s", found, want)
			}
		}
	})
}

func TestMailFails(t *testing.T) {
	each(t, func(w *world) {
		p := newPost(w, false)
		w.mails(p, "weir")
		p.password = "another"
		w.tell("one", w.ada.ID)
		w.settle(w.sender)
		if d := w.only(); d.State != models.DeliveryFailed || d.Status != 535 || d.Response != "who are you" {
			w.Fatalf("%+v", d.Delivery)
		}
		p.mu.Lock()
		p.password, p.refuse = "hunter2", "450 busy"
		p.mu.Unlock()
		w.clock.Advance(time.Hour)
		w.settle(w.sender)
		if d := w.only(); d.State != models.DeliveryFailed || d.Status != 450 {
			w.Fatalf("%+v", d.Delivery)
		}
		p.mu.Lock()
		p.refuse = "550 nobody here"
		p.mu.Unlock()
		w.clock.Advance(time.Hour)
		w.settle(w.sender)
		if d := w.only(); d.State != models.DeliveryGivenUp || d.Status != 550 || d.Attempts != 3 {
			w.Fatalf("%+v", d.Delivery)
		}
		w.sender.Mailer.Roots = x509.NewCertPool()
		w.tell("two", w.ben.ID)
		w.settle(w.sender)
		if d := w.deliveries()[0]; d.State != models.DeliveryFailed || !strings.Contains(d.Problem.String(), "certificate") {
			w.Errorf("a server that nobody vouches for: %+v", d.Delivery)
		}
		w.sender.Mailer.Roots = p.roots
		p.Close()
		w.clock.Advance(time.Hour)
		w.settle(w.sender)
		if d := w.deliveries()[0]; d.State != models.DeliveryFailed || !strings.Contains(d.Problem.String(), "Could not connect") || len(p.letters) != 0 {
			w.Errorf("a server that is gone: %+v", d.Delivery)
		}
	})
}

// Who changes their mind, or is disabled, gets no e-mail that was queued.
func TestMailThatNobodyWantsAnyMore(t *testing.T) {
	each(t, func(w *world) {
		p := newPost(w, false)
		w.mails(p, "")
		w.tell("one", w.ada.ID, w.ben.ID)
		if err := w.service.SetPreference(w.Context(), policies.Actor{User: w.ada}, false, "en"); err != nil {
			w.Fatal(err)
		}
		storetest.InTx(w, w.store, func(q *store.Queries) error { w.ben.Disabled = true; return q.UpdateUser(&w.ben) })
		w.settle(w.sender)
		for _, d := range w.deliveries() {
			if d.State != models.DeliveryGivenUp {
				w.Errorf("%+v", d.Delivery)
			}
		}
		if len(p.letters) > 0 {
			w.Errorf("sent: %q", p.letters)
		}
	})
}

// remote is a connection that comes from elsewhere, as far as one can see.
type remote struct{ net.Conn }

func (remote) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 25} }

func TestNothingIsSaidInTheClear(t *testing.T) {
	p := newPost(t, false)
	p.hideTLS = true
	for _, far := range []bool{true, false} {
		conn, err := net.Dial("tcp", p.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if far {
			conn = remote{conn}
		}
		_, err = p.mailer("").connect(t.Context(), conn, "weir")
		if far != (err != nil && strings.Contains(err.Error(), "STARTTLS")) {
			t.Errorf("far %t: %v", far, err)
		}
		conn.Close()
	}
}

// A server that accepts a connection and says nothing holds nobody up.
func TestSilentMailServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, immediate := range []bool{true, false} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		m := (&post{Listener: l, immediate: immediate}).mailer("")
		o := m.send(ctx, "weir", m.message("ada@example.org", "a", "b"))
		if cancel(); o.done || o.final || !strings.Contains(o.problem.String(), "did not respond within") {
			t.Errorf("TLS at once %t: %+v", immediate, o)
		}
	}
}

// No text of a notification gets into the letter's head, or ends it.
func TestNoTextBecomesAHeader(t *testing.T) {
	evil := "hello\r\nBcc: all@example.org\r\n\r\n.\r\nMAIL FROM:<x>\x00\u2028 你好 " + strings.Repeat("长", 300)
	m := &Mailer{From: mail.Address{Name: "a\r\nX: y", Address: "weir@example.org"}}
	msg := m.message("ada@example.org", evil, evil)
	msg.SetMessageIDWithValue("k@localhost")
	var letter bytes.Buffer
	if _, err := msg.WriteTo(&letter); err != nil {
		t.Fatal(err)
	}
	raw := letter.Bytes()
	head, subject, body := read(t, string(raw))
	if len(head) != 9 || head.Get("Bcc") != "" || head.Get("X") != "" {
		t.Errorf("the head is %v", head)
	}
	if strings.ContainsAny(subject, "\r\n\x00") || !strings.HasPrefix(subject, "hello") || !strings.HasSuffix(subject, "…") || !strings.Contains(body, "你好") {
		t.Errorf("%q", subject)
	}
	for line := range bytes.SplitSeq(raw, []byte("\r\n")) {
		if len(line) > 998 || bytes.ContainsAny(line, "\r\n\x00") {
			t.Errorf("the line %q", line)
		}
	}
}

func TestParseServer(t *testing.T) {
	for text, want := range map[string]string{
		"smtp://mail.example.org": "mail.example.org:587 false ", "smtps://weir@mail.example.org": "mail.example.org:465 true weir",
		"smtp://a%40b@[::1]:2525/": "::1:2525 false a@b", "smtp://u:p@h": "", "http://h": "", "smtp://": "", "mail.example.org": "", "smtp://h/x": "", "smtp://h?x": "",
	} {
		m, err := ParseServer(text)
		got := ""
		if err == nil {
			got = m.Host + ":" + m.Port + map[bool]string{true: " true ", false: " false "}[m.TLS] + m.User
		}
		if got != want || err != nil && strings.Contains(err.Error(), ":p@") {
			t.Errorf("%s: %q %v", text, got, err)
		}
	}
}
