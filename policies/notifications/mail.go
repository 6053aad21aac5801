package notifications

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	netmail "net/mail"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"weir/models"
)

const (
	mailTimeout = 20 * time.Second // for the whole of a conversation
	maxSubject  = 100              // characters
)

// Mailer sends e-mail by one SMTP server.
type Mailer struct {
	Host     string
	Port     string
	TLS      bool   // from the first byte; otherwise by STARTTLS
	User     string // empty: without signing in
	Password string
	From     netmail.Address
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

// mail sends a delivery's notification to its reader, as they want it by now.
func (s *Sender) mail(ctx context.Context, d models.Delivery) outcome {
	q := s.Store.Read(ctx)
	n, err := q.NotificationByID(*d.NotificationID)
	if err != nil {
		return failed(models.Say("The message could not be generated: %s", "database"))
	}
	reader, err := q.User(n.UserID)
	if err != nil {
		return failed(models.Say("The message could not be generated: %s", "database"))
	}
	p, err := q.NotificationPreference(n.UserID)
	if err != nil {
		return failed(models.Say("The message could not be generated: %s", "database"))
	}
	if reader.Disabled || p.PortalOnly {
		return outcome{final: true, problem: models.Say("This person no longer receives email.")}
	}
	say := func(t models.Text) string { return t.In(p.Language) }
	text := say(n.Text)
	body := text + "\n"
	if n.Link != "" {
		body += "\n" + s.Origin + n.Link + "\n"
	}
	body += "\n-- \n" + say(models.Say("You received this email because you have a Weir account. Change your notification settings at %s", s.Origin+"/account")) + "\n"
	msg := s.Mailer.message(reader.Email, "Weir: "+text, body)
	msg.SetMessageIDWithValue(d.Key + "@" + s.domain()) // the same for every attempt
	msg.SetDateWithValue(n.CreatedAt.UTC())
	return s.Mailer.send(ctx, s.domain(), msg)
}

// domain is the portal's own name.
func (s *Sender) domain() string {
	if u, err := url.Parse(s.Origin); err == nil && u.Hostname() != "" && net.ParseIP(u.Hostname()) == nil {
		return u.Hostname()
	}
	return "localhost"
}

// message is an e-mail in plain text. Its subject is one short line.
func (m *Mailer) message(to, subject, body string) *mail.Msg {
	msg := mail.NewMsg(mail.WithNoDefaultUserAgent())
	msg.FromMailAddress(&m.From)
	msg.ToMailAddress(&netmail.Address{Address: to})
	if runes := []rune(excerpt(subject)); len(runes) > maxSubject {
		subject = string(runes[:maxSubject-1]) + "…"
	}
	msg.Subject(excerpt(subject))
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetBodyString(mail.TypeTextPlain, body)
	return msg
}

// send hands one message over. The connection ends with ctx.
func (m *Mailer) send(ctx context.Context, helo string, msg *mail.Msg) outcome {
	ctx, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(m.Host, m.Port))
	if err != nil {
		return mailFailed(err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	client, err := m.connect(ctx, conn, helo)
	if err == nil {
		err = client.Send(msg)
	}
	if msg.IsDelivered() {
		_ = client.Close() // the message is theirs already
		return outcome{done: true, status: 250}
	}
	return mailFailed(cmp.Or(ctx.Err(), err))
}

// connect begins the conversation and signs in. Nothing is sent in the clear,
// but to this machine itself.
func (m *Mailer) connect(ctx context.Context, conn net.Conn, helo string) (*mail.Client, error) {
	config := &tls.Config{ServerName: m.Host, RootCAs: m.Roots, MinVersion: tls.VersionTLS12}
	policy := mail.TLSMandatory
	if loopback(conn) {
		policy = mail.TLSOpportunistic
	}
	if m.TLS {
		conn = tls.Client(conn, config)
	}
	options := []mail.Option{mail.WithHELO(helo), mail.WithTLSConfig(config), mail.WithTLSPolicy(policy), mail.WithoutNoop(), mail.WithoutRset(),
		mail.WithTimeout(2 * mailTimeout), // ctx ends before
		mail.WithDialContextFunc(func(context.Context, string, string) (net.Conn, error) { return conn, nil })}
	if m.TLS {
		options = append(options, mail.WithSSL())
	}
	if m.User != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthPlain), mail.WithUsername(m.User), mail.WithPassword(m.Password))
	}
	client, err := mail.NewClient(m.Host, options...)
	if err != nil {
		return nil, err
	}
	return client, client.DialWithContext(ctx)
}

func loopback(conn net.Conn) bool {
	tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// mailFailed words what a mail server said. What it refuses for good about
// this message is not tried again.
func mailFailed(err error) outcome {
	var reply *textproto.Error
	var refusal *mail.SendError
	var timeout net.Error
	switch {
	case errors.As(err, &reply):
		return outcome{status: int64(reply.Code), answer: excerpt(reply.Msg), problem: models.Say("The mail server returned status %d.", reply.Code)}
	case errors.As(err, &refusal) && refusal.ErrorCode() > 0:
		return outcome{status: int64(refusal.ErrorCode()), answer: excerpt(refusal.Error()),
			final:   refusal.ErrorCode() >= 500 && refusal.Reason != mail.ErrSMTPMailFrom,
			problem: models.Say("The mail server returned status %d.", refusal.ErrorCode())}
	case errors.As(err, &timeout) && timeout.Timeout():
		return failed(models.Say("The mail server did not respond within %d seconds.", int(mailTimeout/time.Second)))
	}
	return failed(models.Say("Could not connect to the mail server: %s", excerpt(err.Error())))
}
