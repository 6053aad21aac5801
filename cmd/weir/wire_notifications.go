package main

import (
	"encoding/pem"
	"fmt"
	"os"
	"strings"

	"weir/policies"
	"weir/policies/notifications"
	"weir/policies/passkeys"
)

// wireNotifications creates the services of notifications, and what signing in needs
// beside the database. The keys that encrypt the secrets of webhooks, of second factors and of workspaces,
// the ceremonies of passkeys and the devices that have signed in, are derived from the authority's key,
// which all servers of a portal have and the database does not contain.
func (p *portal) wireNotifications(access *policies.Access) error {
	authorityKey, err := privateKey(p.cfg.AuthorityFile)
	if err != nil {
		return err
	}
	key, err := notifications.NewKey(authorityKey)
	if err != nil {
		return err
	}
	var stored policies.Key
	for purpose, of := range map[string]*policies.Key{policies.SecondFactorKey: &p.accounts.Key, policies.PasskeyKey: &p.accounts.PasskeyKey,
		policies.DeviceKey: &p.accounts.DeviceKey, policies.WorkspaceKey: &stored} {
		if *of, err = policies.NewKey(authorityKey, purpose); err != nil {
			return err
		}
	}
	p.store.Secrets = stored
	if p.accounts.RelyingParty, err = passkeys.New(p.origin); err != nil {
		return err
	}
	c := p.cfg.Notifications
	p.store.Mail = c.Mailer != nil
	p.notifications = &notifications.Service{Store: p.store, Access: access, Key: key, AllowPrivate: c.AllowPrivateWebhooks}
	p.sender = notifications.NewSender(notifications.SenderConfig{Store: p.store, Key: key, Origin: p.origin, Version: buildVersion().Version,
		AllowPrivate: c.AllowPrivateWebhooks, Mailer: c.Mailer, Accounts: p.accounts, Logger: p.log})
	return nil
}

// privateKey returns the private key in a PEM file.
func privateKey(file string) ([]byte, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		if block, raw = pem.Decode(raw); block == nil {
			return nil, fmt.Errorf("%s: no private key found", file)
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return block.Bytes, nil
		}
	}
}
