package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/cmd/weir/config"
)

// connection contains the flags of a command that calls a server.
type connection struct {
	server, token, tokenFile string
	timeout                  time.Duration
	output                   config.Choice
	noInteractive            bool
}

// session is a running command that calls a server.
type session struct {
	context.Context
	*client
	in          io.Reader
	out, errOut io.Writer
	json        bool // the portal's JSON instead of tables
	yes         bool // confirmed on the command line
	interactive bool // can prompt for confirmation
	inside      bool // calls from inside a workspace, for its runs
}

// remoteCommand makes a command that calls a server.
func remoteCommand(use, short string, args cobra.PositionalArgs, run func(s *session, args []string) error) *cobra.Command {
	r := connection{output: config.Choice{Value: "table", Allowed: []string{"table", "json"}}}
	cmd := &cobra.Command{Use: use, Short: short, Args: args}
	flags := cmd.Flags()
	r.bind(flags)
	flags.VarP(&r.output, "output", "o", "output format; json is the response of the API")
	flags.BoolVar(&r.noInteractive, "no-interactive", false, "never prompt; commands that ask for confirmation require --yes")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := r.open(cmd, os.LookupEnv)
		if err != nil {
			return err
		}
		return run(s, args)
	}
	return cmd
}

// bind adds the flags that say which server is called, and with which token.
func (r *connection) bind(flags *pflag.FlagSet) {
	flags.StringVar(&r.server, "server", "", "`URL` of the portal, such as https://weir.example.org [WEIR_URL]")
	flags.StringVar(&r.token, "token", "", "access `TOKEN`; other users of this machine can read command lines, so prefer the environment [WEIR_TOKEN]")
	flags.StringVar(&r.tokenFile, "token-file", "", "`FILE` with the access token [WEIR_TOKEN_FILE]")
	flags.DurationVar(&r.timeout, "timeout", 30*time.Second, "`DURATION` to wait for each response")
}

// confirmable adds the flag --yes to a command that cannot be undone.
func confirmable(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Bool("yes", false, "skip the confirmation prompt")
	return cmd
}

// open checks the flags and the environment.
func (r connection) open(cmd *cobra.Command, lookupEnv func(string) (string, bool)) (*session, error) {
	var problems []string
	from := func(text, name string) string {
		if text == "" {
			text, _ = lookupEnv(name)
		}
		return strings.TrimSpace(text)
	}
	server, errServer := parsePortal(from(r.server, "WEIR_URL"))
	token, err := r.secret(from)
	socket, api := from("", "WEIR_SOCKET"), from("", "WEIR_API")
	inside := errors.Is(err, errNoToken) && r.server == "" && (socket != "" || api != "")
	switch {
	case !inside:
		socket = ""
	case socket != "":
		err = nil
	default: // in a cluster
		server, errServer = parsePortal(api)
		token, err = from("", "WEIR_API_TOKEN"), nil
	}
	for _, e := range []error{errServer, err} {
		if e != nil {
			problems = append(problems, e.Error())
		}
	}
	if r.timeout <= 0 {
		problems = append(problems, fmt.Sprintf("--timeout: %s must be positive", r.timeout))
	}
	if len(problems) > 0 {
		return nil, &config.UsageError{Problems: problems}
	}
	yes, _ := cmd.Flags().GetBool("yes") // false where there is no such flag
	in, terminal := cmd.InOrStdin().(*os.File)
	c := newClient(server, token, r.timeout).through(socket)
	if inside && socket == "" {
		c.direct()
	}
	return &session{Context: cmd.Context(), client: c,
		inside: inside, in: cmd.InOrStdin(), out: cmd.OutOrStdout(), errOut: cmd.ErrOrStderr(), json: r.output.Value == "json", yes: yes,
		interactive: !r.noInteractive && terminal && config.IsTerminal(in) && config.IsTerminal(cmd.ErrOrStderr())}, nil
}

// secret returns the access token. Flags take precedence over the environment,
// and no error contains the token.
func (r connection) secret(from func(text, name string) string) (string, error) {
	token := strings.TrimSpace(r.token)
	file := r.tokenFile
	if token == "" && file == "" {
		if token = from("", "WEIR_TOKEN"); token == "" {
			file = from("", "WEIR_TOKEN_FILE")
		}
	}
	if token != "" && file != "" {
		return "", errors.New("--token and --token-file cannot both be set")
	}
	if file != "" {
		raw, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("--token-file: %w", err)
		}
		if token = strings.TrimSpace(string(raw)); token == "" {
			return "", fmt.Errorf("--token-file: %s is empty", file)
		}
	}
	switch {
	case token == "":
		return "", errNoToken
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("the access token contains invalid characters")
	}
	return token, nil
}

var errNoToken = errors.New("no access token: create one in the portal, under Account, and set WEIR_TOKEN, --token-file or --token")

// parsePortal accepts a URL of scheme and host only. Its error does not contain
// a password.
func parsePortal(text string) (string, error) {
	if text == "" {
		return "", errors.New("no server: set --server or WEIR_URL, such as https://weir.example.org")
	}
	if u, err := url.Parse(text); err == nil && u.User != nil {
		return "", errors.New("--server: must be a URL without a user and a password")
	}
	server, err := config.ParseOrigin(text)
	if err != nil {
		return "", fmt.Errorf("--server: %w", err)
	}
	return server, nil
}

// errNotConfirmed is returned for any reply except yes.
var errNotConfirmed = errors.New("canceled; nothing was changed")

// confirm prompts before an action that cannot be undone.
func (s *session) confirm(format string, args ...any) error {
	what := clean(fmt.Sprintf(format, args...))
	switch {
	case s.yes:
		return nil
	case !s.interactive:
		return config.Usagef("%s Confirm with --yes.", what)
	}
	fmt.Fprintf(s.errOut, "%s\nContinue? [y/N] ", what)
	line, err := bufio.NewReader(io.LimitReader(s.in, 1000)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return errNotConfirmed
}

// send makes a request and shows the resource in the response.
func send[T any](s *session, method, path string, body any, etag string, write func(*table, T)) error {
	res, err := s.call(s, method, path, body, etag)
	if err != nil {
		return err
	}
	var now T
	if err := decode(s.client, res.body, &now); err != nil {
		return err
	}
	return s.show(res.body, func(t *table) { write(t, now) })
}

// show prints the JSON of a response, or the tables of write.
func (s *session) show(raw []byte, write func(*table)) error {
	if !s.json {
		t := newTable(s.out)
		write(t)
		return t.flush()
	}
	if len(raw) == 0 {
		return nil
	}
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(raw), "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err := s.out.Write(b.Bytes())
	return err
}

// resolve returns ref if it is an id, and otherwise the id of the item of a list
// for which idOf is not 0. missing is the format of the error without such an
// item.
func resolve[T any](s *session, ref, path string, query url.Values, idOf func(T) int64, missing string) (int64, error) {
	if id, err := strconv.ParseInt(ref, 10, 64); err == nil {
		return id, nil
	}
	items, _, err := fetchAll[T](s, s.client, path, query)
	if err != nil {
		return 0, err
	}
	for _, item := range items {
		if id := idOf(item); id != 0 {
			return id, nil
		}
	}
	return 0, WithExitCode(fmt.Errorf(missing, ref), ExitNotFound)
}

// parseID is the ID that an argument names a run, a workspace or a deployment by.
func parseID(arg, what string) (int64, error) {
	id, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || id < 1 {
		return 0, config.Usagef("%q is not the ID of a %s", arg, what)
	}
	return id, nil
}
