package main

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/mail"
	"os"
	"strings"

	"weir/models"
	"weir/policies"
	"weir/policies/notifications"
)

// noticesConfig is how people and programs are told of things.
type noticesConfig struct {
	Mailer         *notifications.Mailer // nil: no e-mail
	PasswordFile   string                // absolute
	From           string
	WebhookPrivate bool
}

// noticeOptions are the settings of e-mail and webhooks.
var noticeOptions = []option{
	{name: "smtp-url", kind: "URL",
		help: "mail server for notices: smtp://user@host:587, with STARTTLS, or smtps://user@host:465; empty: no e-mail",
		set:  into(func(c *Config) **notifications.Mailer { return &c.Notices.Mailer }, parseMailServer)},
	{name: "smtp-password-file", kind: "FILE",
		help: "file with the password at the mail server",
		set:  into(func(c *Config) *string { return &c.Notices.PasswordFile }, parseDir)},
	{name: "smtp-from", kind: "ADDRESS",
		help: "who the e-mail is from, such as “Weir <weir@example.org>”",
		set:  into(func(c *Config) *string { return &c.Notices.From }, parseSender)},
	{name: "webhook-allow-private", kind: "BOOL", def: "false",
		help: "let webhooks go to this machine and to private networks, also without TLS",
		set:  into(func(c *Config) *bool { return &c.Notices.WebhookPrivate }, parseBool)},
}

// parseMailServer does not repeat what may hold a password.
func parseMailServer(text string) (*notifications.Mailer, error) {
	if text == "" {
		return nil, nil
	}
	return notifications.ParseServer(text)
}

func parseSender(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if _, err := mail.ParseAddress(text); err != nil {
		return "", fmt.Errorf("%q must be an address such as Weir <weir@example.org>", text)
	}
	return text, nil
}

// completeMail joins the settings of e-mail, and says what does not fit
// together.
func (c *Config) completeMail() (problems []string) {
	n := &c.Notices
	if n.Mailer == nil {
		if n.From != "" || n.PasswordFile != "" {
			problems = append(problems, "smtp-url: must be set where smtp-from or smtp-password-file is")
		}
		return problems
	}
	from, err := mail.ParseAddress(n.From)
	if err != nil {
		return append(problems, "smtp-from: must be set where smtp-url is")
	}
	n.Mailer.From = *from
	switch {
	case n.PasswordFile == "":
		return problems
	case n.Mailer.User == "":
		return append(problems, "smtp-url: must name a user where smtp-password-file is set")
	}
	raw, err := os.ReadFile(n.PasswordFile)
	if n.Mailer.Password = strings.TrimRight(string(raw), "\r\n"); err == nil && n.Mailer.Password == "" {
		err = errors.New("the file is empty")
	}
	if err != nil {
		problems = append(problems, "smtp-password-file: "+err.Error())
	}
	return problems
}

// wireNotices makes what tells people and programs. The key that seals
// webhooks' secrets is derived from the authority's: all servers of a
// portal have it, and the database has not.
func (p *portal) wireNotices(access *policies.Access) error {
	shared, err := privateKey(p.cfg.AuthorityFile)
	if err != nil {
		return err
	}
	key, err := notifications.NewKey(shared)
	if err != nil {
		return err
	}
	c := p.cfg.Notices
	p.store.Mail = c.Mailer != nil
	p.notices = notifications.New(notifications.Config{Store: p.store, Access: access, Key: key, AllowPrivate: c.WebhookPrivate})
	p.sender = notifications.NewSender(notifications.SenderConfig{Store: p.store, Key: key, Fence: p.fence.check, Origin: p.origin, Version: buildVersion().Version,
		AllowPrivate: c.WebhookPrivate, Mailer: c.Mailer, Logger: p.log,
		Say: func(language string, t models.Text) string { return t.In(language) }})
	return nil
}

// privateKey is the key in a PEM file, without what stands around it.
func privateKey(file string) ([]byte, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		if block, raw = pem.Decode(raw); block == nil {
			return nil, fmt.Errorf("%s: there is no private key", file)
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return block.Bytes, nil
		}
	}
}
