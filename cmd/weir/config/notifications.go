package config

import (
	"errors"
	"fmt"
	"net/mail"
	"os"
	"strings"

	"weir/policies/notices"
)

// notificationSettings are the settings of e-mail and webhooks.
var notificationSettings = []setting{
	{name: "smtp-url", kind: "URL",
		help: "mail server for notices: smtp://user@host:587, with STARTTLS, or smtps://user@host:465; empty: no e-mail",
		set:  into(func(c *Config) **notices.Mailer { return &c.Notifications.Mailer }, parseMailServer)},
	{name: "smtp-password-file", kind: "FILE",
		help: "file with the password at the mail server",
		set:  into(func(c *Config) *string { return &c.Notifications.PasswordFile }, parseDir)},
	{name: "smtp-from", kind: "ADDRESS",
		help: "who the e-mail is from, such as “Weir <weir@example.org>”",
		set:  into(func(c *Config) *string { return &c.Notifications.From }, parseSender)},
	{name: "webhook-allow-private", kind: "BOOL", def: "false",
		help: "let webhooks go to this machine and to private networks, also without TLS",
		set:  into(func(c *Config) *bool { return &c.Notifications.WebhookPrivate }, parseBool)},
}

// parseMailServer does not repeat what may hold a password.
func parseMailServer(text string) (*notices.Mailer, error) {
	if text == "" {
		return nil, nil
	}
	return notices.ParseServer(text)
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
	n := &c.Notifications
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
