package notifications

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"net/url"
	"strings"
	"time"
	"unicode"

	"weir/models"
)

const (
	mailPatience = 20 * time.Second // for the whole of a conversation
	maxSubject   = 100              // characters
)

// Mailer sends e-mail by one SMTP server.
type Mailer struct {
	Host     string
	Port     string
	TLS      bool   // from the first byte; otherwise by STARTTLS
	User     string // empty: without signing in
	Password string
	From     mail.Address
	Roots    *x509.CertPool // who vouches for the server; nil: as the system says
}

// ParseServer reads smtp://user@host:587 or smtps://user@host:465 into a
// Mailer. The password does not stand there.
func ParseServer(text string) (*Mailer, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || (u.Scheme != "smtp" && u.Scheme != "smtps") || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("must be an address like smtp://user@mail.example.org:587 or smtps://user@mail.example.org")
	}
	if _, has := u.User.Password(); has {
		return nil, errors.New("must not hold the password: name a file that does with smtp-password-file")
	}
	m := &Mailer{Host: u.Hostname(), Port: u.Port(), TLS: u.Scheme == "smtps", User: u.User.Username()}
	if m.Port == "" {
		m.Port = map[bool]string{true: "465", false: "587"}[m.TLS]
	}
	return m, nil
}

// send hands one message over.
func (m *Mailer) send(ctx context.Context, helo, to string, message []byte) outcome {
	ctx, cancel := context.WithTimeout(ctx, mailPatience)
	defer cancel()
	client, err := m.connect(ctx, helo)
	if err != nil {
		return mailFailed(err, false)
	}
	defer client.Close()
	if err := client.Mail(m.From.Address); err != nil {
		return mailFailed(err, false)
	}
	if err := client.Rcpt(to); err != nil {
		return mailFailed(err, true)
	}
	w, err := client.Data()
	if err != nil {
		return mailFailed(err, true)
	}
	if _, err := w.Write(message); err != nil {
		return mailFailed(err, false)
	}
	if err := w.Close(); err != nil {
		return mailFailed(err, true)
	}
	_ = client.Quit() // the message is theirs already
	return outcome{done: true, status: 250}
}

// connect reaches the server and signs in.
func (m *Mailer) connect(ctx context.Context, helo string) (*smtp.Client, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(m.Host, m.Port))
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // also when the server stops; a closed one does not mind
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	client, err := m.greet(conn, helo)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return client, nil
}

// greet begins the conversation. Nothing is said in the clear, but to this
// machine itself.
func (m *Mailer) greet(conn net.Conn, helo string) (*smtp.Client, error) {
	config := &tls.Config{ServerName: m.Host, RootCAs: m.Roots, MinVersion: tls.VersionTLS12}
	mayBeClear := m.TLS || loopback(conn)
	if m.TLS {
		conn = tls.Client(conn, config)
	}
	client, err := smtp.NewClient(conn, m.Host)
	if err != nil {
		return nil, err
	}
	if err := client.Hello(helo); err != nil {
		return nil, err
	}
	if offered, _ := client.Extension("STARTTLS"); offered && !m.TLS {
		err = client.StartTLS(config)
	} else if !mayBeClear {
		err = errors.New("the server does not offer STARTTLS; Weir sends nothing in the clear")
	}
	if err == nil && m.User != "" {
		err = client.Auth(smtp.PlainAuth("", m.User, m.Password, m.Host))
	}
	return client, err
}

func loopback(conn net.Conn) bool {
	tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// mailFailed words what a mail server said. What it refuses for good about
// this message is not tried again.
func mailFailed(err error, aboutMessage bool) outcome {
	var reply *textproto.Error
	var timeout net.Error
	switch {
	case errors.As(err, &reply):
		return outcome{status: int64(reply.Code), answer: excerpt(reply.Msg), final: aboutMessage && reply.Code >= 500,
			problem: models.Say("The mail server answered %d.", reply.Code)}
	case errors.As(err, &timeout) && timeout.Timeout():
		return failed(models.Say("The mail server did not answer within %d seconds.", int(mailPatience/time.Second)))
	}
	return failed(models.Say("The mail server was not reached: %s", excerpt(err.Error())))
}

// letter is an e-mail in plain text.
type letter struct {
	from    mail.Address
	to      string
	id      string // for Message-ID, without its domain
	domain  string
	subject string
	body    string
	at      time.Time
}

// bytes writes the letter as RFC 5322 wants it. No text gets into a header as
// it is: the subject is one line, encoded where it is not plain ASCII.
func (l letter) bytes() []byte {
	var b bytes.Buffer
	header := func(name, value string) { fmt.Fprintf(&b, "%s: %s\r\n", name, value) }
	header("From", l.from.String())
	header("To", (&mail.Address{Address: l.to}).String())
	header("Subject", mime.BEncoding.Encode("utf-8", oneLine(l.subject)))
	header("Date", l.at.UTC().Format(time.RFC1123Z))
	header("Message-ID", "<"+l.id+"@"+l.domain+">")
	header("Auto-Submitted", "auto-generated")
	header("MIME-Version", "1.0")
	header("Content-Type", "text/plain; charset=utf-8")
	header("Content-Transfer-Encoding", "quoted-printable")
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	_, _ = w.Write([]byte(strings.ReplaceAll(l.body, "\n", "\r\n"))) // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if runes := []rune(text); len(runes) > maxSubject {
		text = string(runes[:maxSubject-1]) + "…"
	}
	return text
}

// mail sends a delivery's notice to its reader, as they want it by now.
func (s *Sender) mail(ctx context.Context, d models.Delivery) outcome {
	q := s.Store.Read(ctx)
	n, err := q.NoticeByID(*d.NoticeID)
	if err != nil {
		return failed(models.Say("The message cannot be written: %s", "database"))
	}
	reader, err := q.User(n.UserID)
	if err != nil {
		return failed(models.Say("The message cannot be written: %s", "database"))
	}
	p, err := q.NoticePreference(n.UserID)
	if err != nil {
		return failed(models.Say("The message cannot be written: %s", "database"))
	}
	if reader.Disabled || p.PortalOnly {
		return outcome{final: true, problem: models.Say("This person gets no e-mail any more.")}
	}
	say := func(t models.Text) string { return s.Say(p.Language, t) }
	text := say(n.Text)
	body := text + "\n"
	if n.Link != "" {
		body += "\n" + s.Origin + n.Link + "\n"
	}
	body += "\n-- \n" + say(models.Say("You get this because you have an account on this Weir. Whether by e-mail you choose at %s", s.Origin+"/account")) + "\n"
	l := letter{from: s.Mailer.From, to: reader.Email, id: d.Key, domain: s.domain(), subject: "Weir: " + text, body: body, at: n.CreatedAt}
	return s.Mailer.send(ctx, s.domain(), reader.Email, l.bytes())
}

// domain is the portal's own name.
func (s *Sender) domain() string {
	if u, err := url.Parse(s.Origin); err == nil && u.Hostname() != "" && net.ParseIP(u.Hostname()) == nil {
		return u.Hostname()
	}
	return "localhost"
}
