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
	mailTimeout = 20 * time.Second // of an SMTP session
	maxSubject  = 100              // characters
)

// Mailer sends email through an SMTP server.
type Mailer struct {
	Host     string
	Port     string
	TLS      bool   // implicit TLS; otherwise STARTTLS
	User     string // empty: without authentication
	Password string
	From     netmail.Address
	Roots    *x509.CertPool // of the server's certificate; nil for the system's
}

// ParseServer reads smtp://user@host:587 or smtps://user@host:465 into a
// Mailer. The URL must not contain a password.
func ParseServer(text string) (*Mailer, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || (u.Scheme != "smtp" && u.Scheme != "smtps") ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("must be an address like smtp://user@mail.example.org:587 or smtps://user@mail.example.org")
	}
	if _, has := u.User.Password(); has {
		return nil, errors.New("must not hold the password: name a file that does with smtp-password-file")
	}
	port := map[string]string{"smtp": "587", "smtps": "465"}[u.Scheme]
	return &Mailer{Host: u.Hostname(), Port: cmp.Or(u.Port(), port), TLS: u.Scheme == "smtps", User: u.User.Username()}, nil
}

// message builds an email in plain text.
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

// send sends one message. The connection is closed when ctx ends.
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
		_ = client.Close() // the server has accepted the message
		return outcome{done: true, status: 250}
	}
	return mailFailed(cmp.Or(ctx.Err(), err))
}

// connect starts an SMTP session and authenticates. TLS is required except for
// a server on this machine.
func (m *Mailer) connect(ctx context.Context, conn net.Conn, helo string) (*mail.Client, error) {
	config := &tls.Config{ServerName: m.Host, RootCAs: m.Roots, MinVersion: tls.VersionTLS12}
	policy := mail.TLSMandatory
	if loopback(conn) {
		policy = mail.TLSOpportunistic
	}
	if m.TLS {
		conn = tls.Client(conn, config)
	}
	options := []mail.Option{mail.WithHELO(helo), mail.WithTLSConfig(config), mail.WithTLSPolicy(policy),
		mail.WithoutNoop(), mail.WithoutRset(),
		mail.WithTimeout(2 * mailTimeout), // ctx ends earlier
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

// mailFailed is the outcome of an SMTP error. A permanent error of this message
// is not retried.
func mailFailed(err error) outcome {
	var reply *textproto.Error
	var refusal *mail.SendError
	var timeout net.Error
	switch {
	case errors.As(err, &reply):
		return outcome{status: int64(reply.Code), answer: excerpt(reply.Msg),
			problem: models.Say("The mail server returned status %d.", reply.Code)}
	case errors.As(err, &refusal) && refusal.ErrorCode() > 0:
		return outcome{status: int64(refusal.ErrorCode()), answer: excerpt(refusal.Error()),
			final:   refusal.ErrorCode() >= 500 && refusal.Reason != mail.ErrSMTPMailFrom,
			problem: models.Say("The mail server returned status %d.", refusal.ErrorCode())}
	case errors.As(err, &timeout) && timeout.Timeout():
		return failed(models.Say("The mail server did not respond within %d seconds.", int(mailTimeout/time.Second)))
	}
	return failed(models.Say("Could not connect to the mail server: %s", connectionCause(err)))
}
