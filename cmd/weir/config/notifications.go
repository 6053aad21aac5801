package config

import (
	"errors"
	"fmt"
	"net/mail"
	"os"
	"strings"

	"weir/policies/notifications"
)

// notificationSettings are the settings of e-mail and webhooks.
var notificationSettings = []setting{
	{name: "smtp-url", kind: "URL",
		help: "mail server for notifications: smtp://user@host:587 (STARTTLS) or smtps://user@host:465 (default none: no email)",
		set:  into(func(c *Config) **notifications.Mailer { return &c.Notifications.Mailer }, optional(notifications.ParseServer))},
	{name: "smtp-password-file", kind: "FILE",
		help: "file with the password for the mail server",
		set:  into(func(c *Config) *string { return &c.Notifications.PasswordFile }, parseDir)},
	{name: "smtp-from", kind: "ADDRESS",
		help: "sender of email, such as “Weir <weir@example.org>”",
		set:  into(func(c *Config) *string { return &c.Notifications.From }, optional(parseSender))},
	{name: "webhook-allow-private", kind: "BOOL", defaultText: "false",
		help: "allow webhooks to this machine and to private networks, also without TLS",
		set:  into(func(c *Config) *bool { return &c.Notifications.AllowPrivateWebhooks }, parseBool)},
}

func parseSender(text string) (string, error) {
	if _, err := mail.ParseAddress(text); err != nil {
		return "", fmt.Errorf("%q must be an address such as Weir <weir@example.org>", text)
	}
	return text, nil
}

// completeMail reads the password and checks settings against each other.
func (c *Config) completeMail() (p problems) {
	n := &c.Notifications
	if n.Mailer == nil {
		p.require(n.From == "" && n.PasswordFile == "", "smtp-url: is required with smtp-from and smtp-password-file")
		return p
	}
	from, err := mail.ParseAddress(n.From)
	if err != nil {
		return problems{"smtp-from: is required with smtp-url"}
	}
	n.Mailer.From = *from
	if n.PasswordFile == "" || n.Mailer.User == "" {
		p.require(n.PasswordFile == "", "smtp-url: must include a user with smtp-password-file")
		return p
	}
	raw, err := os.ReadFile(n.PasswordFile)
	if n.Mailer.Password = strings.TrimRight(string(raw), "\r\n"); err == nil && n.Mailer.Password == "" {
		err = errors.New("the file is empty")
	}
	p.require(err == nil, fmt.Sprint("smtp-password-file: ", err))
	return p
}
