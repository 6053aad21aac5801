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
		set:  into(func(c *Config) **notifications.Mailer { return &c.Notifications.Mailer }, parseMailServer)},
	{name: "smtp-password-file", kind: "FILE",
		help: "file with the password for the mail server",
		set:  into(func(c *Config) *string { return &c.Notifications.PasswordFile }, parseDir)},
	{name: "smtp-from", kind: "ADDRESS",
		help: "sender of email, such as “Weir <weir@example.org>”",
		set:  into(func(c *Config) *string { return &c.Notifications.From }, parseSender)},
	{name: "webhook-allow-private", kind: "BOOL", def: "false",
		help: "allow webhooks to this machine and to private networks, also without TLS",
		set:  into(func(c *Config) *bool { return &c.Notifications.WebhookPrivate }, parseBool)},
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
	n := &c.Notifications
	if n.Mailer == nil {
		if n.From != "" || n.PasswordFile != "" {
			problems = append(problems, "smtp-url: is required with smtp-from and smtp-password-file")
		}
		return problems
	}
	from, err := mail.ParseAddress(n.From)
	if err != nil {
		return append(problems, "smtp-from: is required with smtp-url")
	}
	n.Mailer.From = *from
	switch {
	case n.PasswordFile == "":
		return problems
	case n.Mailer.User == "":
		return append(problems, "smtp-url: must include a user with smtp-password-file")
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
