package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/cmd/weir/config"
	"weir/handlers"
	"weir/models"
	"weir/pool/providers"
)

// providerFlags are the flags of “weir provider set”. Only flags that are set
// change a value.
type providerFlags struct {
	name, owner, devices, projects, timeZone, grace, termsFile string
	cores                                                      int64
	hours                                                      []string
}

func newProviderSetCommand() *cobra.Command {
	var v providerFlags
	var cmd *cobra.Command
	cmd = remoteCommand("set PROVIDER", "Change the name, owner or terms of a provider", cobra.ExactArgs(1),
		func(s *session, args []string) error {
			return v.apply(s, cmd.Flags(), args[0])
		})
	flags := cmd.Flags()
	flags.StringVar(&v.name, "name", "", "`NAME` of the provider")
	flags.StringVar(&v.owner, "owner", "", "`EMAIL` or ID of the owner; administrators only")
	flags.Int64Var(&v.cores, "cores", 0, "`CORES` of each GPU to lend, up to 100; 0 for all")
	flags.StringVar(&v.devices, "devices", "", "`IDS` of the GPUs to lend, such as 1,2; or all")
	flags.StringVar(&v.projects, "projects", "", "`IDS` of the projects to lend to, such as 3,4; or all")
	flags.StringArrayVar(&v.hours, "hours", nil, "`HOURS` in which to lend, such as “mon-fri 20:00-08:00”, or always; can be repeated")
	flags.StringVar(&v.timeZone, "time-zone", "", "`ZONE` of the hours, such as Europe/Berlin; UTC if empty")
	flags.StringVar(&v.grace, "grace", "", "`DURATION` before the hours end at which users are notified, in whole minutes")
	flags.StringVar(&v.termsFile, "terms-file", "", "`FILE` with all terms as JSON, as in “show --output json”; - for standard input; other flags override it")
	return cmd
}

// settable are the flags that change something.
var settable = []string{"name", "owner", "cores", "devices", "projects", "hours", "time-zone", "grace", "terms-file"}

func (v providerFlags) apply(s *session, given *pflag.FlagSet, ref string) error {
	if !slices.ContainsFunc(settable, given.Changed) {
		return config.Usagef("nothing to change: set at least one of --%s", strings.Join(settable, ", --"))
	}
	terms, err := v.file(s.in)
	if err != nil {
		return err
	}
	change, err := v.terms(given)
	if err != nil {
		return err
	}
	p, read, err := s.provider(ref)
	if err != nil {
		return err
	}
	in := providers.ProviderInput{Name: p.Name, Terms: p.Terms}
	if terms != nil {
		in.Terms = *terms
	}
	change(&in.Terms)
	if given.Changed("name") {
		in.Name = v.name
	}
	if given.Changed("owner") {
		owner, err := s.accountID(v.owner)
		if err != nil {
			return err
		}
		in.OwnerID = &owner
	}
	return send(s, http.MethodPut, providerPath(p.ID), in, read.etag, providerTable)
}

// terms checks the flags and returns a function that applies them, or an error
// with all problems.
func (v providerFlags) terms(given *pflag.FlagSet) (func(*models.Terms), error) {
	var problems []string
	check := func(flag string, err error) {
		if err != nil && given.Changed(flag) {
			problems = append(problems, "--"+flag+": "+strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	devices, err := parseIDs(v.devices)
	check("devices", err)
	projects, err := parseIDs(v.projects)
	check("projects", err)
	hours, err := parseHours(v.hours)
	check("hours", err)
	grace, err := parseMinutes(v.grace)
	check("grace", err)
	if len(problems) > 0 {
		return nil, &config.UsageError{Problems: problems}
	}
	return func(t *models.Terms) {
		for flag, set := range map[string]func(){
			"cores":     func() { t.Cores = v.cores },
			"devices":   func() { t.Devices = devices },
			"projects":  func() { t.Projects = projects },
			"hours":     func() { t.Hours = hours },
			"time-zone": func() { t.TimeZone = v.timeZone },
			"grace":     func() { t.GraceMinutes = grace },
		} {
			if given.Changed(flag) {
				set()
			}
		}
	}, nil
}

// maxTerms is the maximum size of a file of terms in bytes.
const maxTerms = 1 << 20

// file reads the terms of --terms-file; nil when there is none.
func (v providerFlags) file(stdin io.Reader) (*models.Terms, error) {
	if v.termsFile == "" {
		return nil, nil
	}
	in := stdin
	if v.termsFile != "-" {
		f, err := os.Open(v.termsFile)
		if err != nil {
			return nil, config.Usagef("--terms-file: %v", err)
		}
		defer f.Close()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxTerms+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("--terms-file: %w", err)
	case len(raw) > maxTerms:
		return nil, config.Usagef("--terms-file: must not exceed %d MiB", maxTerms>>20)
	}
	var t models.Terms
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return nil, config.Usagef("--terms-file: must contain the terms as JSON: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, config.Usagef("--terms-file: unexpected data after the terms")
	}
	return &t, nil
}

// accountID finds an account by its id, or by its email address.
func (s *session) accountID(ref string) (int64, error) {
	return resolve(s, ref, "/users", url.Values{"q": {ref}}, func(u handlers.User) int64 {
		if !strings.EqualFold(u.Email, strings.TrimSpace(ref)) {
			return 0
		}
		return u.ID
	}, "no account with the email address %q")
}
