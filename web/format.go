package web

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"weir/models"
)

func number(n int64) string { return strconv.FormatInt(n, 10) }

func projectPath(n int64) string { return "/projects/" + number(n) }

func workspacePath(n int64) string { return "/workspaces/" + number(n) }

func devicePath(n int64) string { return "/pool/devices/" + number(n) }

func providerPath(n int64) string { return "/pool/providers/" + number(n) }

// percent is a part of a whole as an SVG length, clamped to 0–100%.
func percent(part, whole int64) string {
	if whole <= 0 || part <= 0 {
		return "0%"
	}
	return strconv.FormatFloat(min(100, float64(part)*100/float64(whole)), 'f', 2, 64) + "%"
}

// keepUnits joins numbers to their units, so that no line ends between them.
func keepUnits(text string) string {
	for i := 1; i < len(text); i++ {
		if text[i] == ' ' && '0' <= text[i-1] && text[i-1] <= '9' && startsWithUnit(text[i+1:]) {
			text = text[:i] + "\u00a0" + text[i+1:]
		}
	}
	return text
}

func startsWithUnit(text string) bool {
	for _, unit := range []string{"MiB", "GiB", "TiB", "s", "min", "h", "秒", "分钟", "小时"} {
		if rest, ok := strings.CutPrefix(text, unit); ok && (rest == "" || rest[0] < 'A' || rest[0] > 'z') {
			return true
		}
	}
	return false
}

// percentWord is a part of a whole in whole percent.
func percentWord(part, whole int64) string {
	if whole <= 0 {
		return "0%"
	}
	return number(part*100/whole) + "%"
}

// timestamp is a moment as a program reads it.
func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// day is a date; dates of periods are whole days in UTC.
func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// span formats the time between two moments, rounded.
func span(ctx context.Context, from, to time.Time) string {
	switch d := to.Sub(from); {
	case d < time.Minute:
		return T(ctx, "%d s", max(0, int64(d.Seconds())))
	case d < time.Hour:
		return T(ctx, "%d min", int64(d.Minutes()))
	case d < 48*time.Hour && int64(d.Minutes())%60 == 0:
		return T(ctx, "%d h", int64(d.Hours()))
	case d < 48*time.Hour:
		return T(ctx, "%d h %d min", int64(d.Hours()), int64(d.Minutes())%60)
	default:
		return T(ctx, "%d days", int64(d.Hours())/24)
	}
}

// spanFormats are the formats of span, for the browser, which keeps times current.
func spanFormats(ctx context.Context) string {
	const first, second = int64(31), int64(47) // are written by all of them, and in the plural
	formats := []string{T(ctx, "%d s", first), T(ctx, "%d min", first), T(ctx, "%d h", first), T(ctx, "%d h %d min", first, second),
		T(ctx, "%d days", first)}
	return strings.NewReplacer("31", "%d", "47", "%d").Replace(strings.Join(formats, "|"))
}

// since formats how long ago a moment was.
func since(ctx context.Context, t time.Time) string {
	if now := From(ctx).Now; !now.IsZero() {
		return span(ctx, t, now)
	}
	return ""
}

// demand formats the demand of a workspace: "2 × 50 cores · 16 GiB".
func demand(ctx context.Context, d models.Demand) string {
	var parts []string
	if d.GPUs == 0 || d.Cores == 0 {
		parts = append(parts, T(ctx, "no GPU"))
	} else {
		parts = append(parts, T(ctx, "%s GPU cores", cores(d.GPUs, d.Cores)))
	}
	parts = append(parts, T(ctx, "%s CPU", models.Quantity("cpu_milli", d.CPUMilli)), models.FormatMiB(d.MemoryMiB))
	return strings.Join(parts, " · ")
}

// cores formats a demand of cores on several GPUs.
func cores(gpus, each int64) string {
	if gpus > 1 {
		return number(gpus) + " × " + number(each)
	}
	return number(each)
}

// joinTexts joins several texts.
func joinTexts(ctx context.Context, texts []models.Text) string {
	var parts []string
	for _, t := range texts {
		parts = append(parts, TT(ctx, t))
	}
	return strings.Join(parts, T(ctx, "; "))
}

var stateWords = map[string]models.Text{
	"requested": models.Say("requested"),
	"queued":    models.Say("queued"),
	"starting":  models.Say("starting"),
	"running":   models.Say("running"),
	"stopping":  models.Say("stopping"),
	"stopped":   models.Say("stopped"),
	"failed":    models.Say("failed"),
	"pending":   models.Say("pending"),
	"online":    models.Say("online"),
	"draining":  models.Say("draining"),
	"offline":   models.Say("offline"),
	"lost":      models.Say("lost"),
	"recalled":  models.Say("recalled"),
	"granted":   models.Say("granted"),
	"partial":   models.Say("partial"),
	"delayed":   models.Say("delayed"),
	"refused":   models.Say("refused"),
	"approved":  models.Say("approved"),
	"adjusted":  models.Say("adjusted"),
	"withdrawn": models.Say("withdrawn"),
	"accepted":  models.Say("accepted"),
	"expired":   models.Say("expired"),
	"revoked":   models.Say("revoked"),
	"manager":   models.Say("manager"),
	"member":    models.Say("member"),
	"owner":     models.Say("owner"),
	"viewer":    models.Say("viewer"),
	"custom":    models.Say("custom"),
}

// stateWord is a state, outcome or permission in the page's language.
func stateWord(ctx context.Context, state string) string {
	return translateWord(ctx, stateWords, state)
}

// stateClass is the CSS class of a state.
func stateClass(state string) string {
	switch state {
	case "running", "online", "granted", "approved", "adjusted", "accepted":
		return "ok"
	case "requested", "queued", "pending", "delayed":
		return "wait"
	case "starting", "stopping", "draining", "partial":
		return "warn"
	case "failed", "lost", "refused", "recalled":
		return "bad"
	}
	return "off"
}

// enforcement formats how a share is enforced.
func enforcement(ctx context.Context, e string) string {
	switch e {
	case "":
		return ""
	case models.EnforcedExclusive:
		return T(ctx, "exclusive")
	case models.EnforcedAdvisory:
		return T(ctx, "advisory")
	case models.EnforcedMPS:
		return "MPS"
	case models.EnforcementLapsed:
		return T(ctx, "advisory, MPS daemon not running")
	case models.EnforcedMIG:
		return "MIG"
	}
	return e
}

// enforcementHelp explains the enforcement to the user of the share.
func enforcementHelp(ctx context.Context, e string) string {
	switch e {
	case models.EnforcedExclusive:
		return T(ctx, "Exclusive: the whole GPU, visible only to its user.")
	case models.EnforcedAdvisory:
		return T(ctx, "Advisory: not isolated and not limited. A program can exceed its share.")
	case models.EnforcedMPS:
		return T(ctx, "MPS: NVIDIA's Multi-Process Service limits threads and memory. A program that crashes can bring down the others on this GPU.")
	case models.EnforcementLapsed:
		return T(ctx, "Advisory: the Multi-Process Service daemon of this GPU is not running. Limits are not enforced until it is back.")
	case models.EnforcedMIG:
		return T(ctx, "MIG: an instance isolated by the hardware, with its own memory.")
	}
	return e
}

// sharing is how a device is shared.
func sharing(ctx context.Context, mode string) string {
	switch mode {
	case models.SharingExclusive:
		return T(ctx, "exclusive")
	case models.SharingTimeSlicing:
		return T(ctx, "time-slicing")
	case models.SharingMPS:
		return "MPS"
	case models.SharingMIG:
		return "MIG"
	}
	return mode
}

// measured is a measured percentage, or that there is none.
func measured(ctx context.Context, percent *int64) string {
	if percent == nil {
		return T(ctx, "not measured")
	}
	return number(*percent) + "%"
}

// grouped is a large number for people: 18,204.
func grouped(n int64) string { return thousands(number(n)) }

// decimalHours formats hours with two decimals, grouped.
func decimalHours(n float64) string {
	whole, part, _ := strings.Cut(strconv.FormatFloat(n, 'f', 2, 64), ".")
	return thousands(whole) + "." + part
}

func thousands(digits string) string {
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// query escapes a value for an address.
func query(s string) string { return url.QueryEscape(s) }

func yesNo(ctx context.Context, b bool) string {
	if b {
		return T(ctx, "yes")
	}
	return T(ctx, "no")
}

// begun renders a text with, in English, a capital letter, unless it begins with what somebody
// has typed or named.
func begun(ctx context.Context, t models.Text) string {
	s := TT(ctx, t)
	if From(ctx).Lang != models.English || s == "" || beginsWithName(t) {
		return s
	}
	return capitalised(s)
}

func capitalised(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

func beginsWithName(t models.Text) bool {
	if !strings.HasPrefix(t.Format, "%") || len(t.Args) == 0 {
		return false
	}
	first, isText := t.Args[0].(models.Text)
	return !isText || beginsWithName(first)
}

// sentence renders a text as begun does, and with a full stop; an empty text remains empty.
func sentence(ctx context.Context, t models.Text) string {
	s := begun(ctx, t)
	if t.Empty() || strings.HasSuffix(s, ".") || strings.HasSuffix(s, "。") {
		return s
	}
	return T(ctx, "%s.", s)
}

// gap separates two sentences; Chinese writes none after its full stop.
func gap(ctx context.Context) string {
	if From(ctx).Lang == models.Chinese {
		return ""
	}
	return " "
}

func endDate(ctx context.Context, t *time.Time) string {
	if t == nil {
		return T(ctx, "no end date")
	}
	return day(models.LastDay(*t))
}

// itemPath is the address of a thing in a list, or of the list for a new one.
func itemPath(list string, n int64) string {
	if n == 0 {
		return list
	}
	return list + "/" + number(n)
}

// period formats a period of use by its dates.
func period(ctx context.Context, from time.Time, until *time.Time) string {
	if until == nil {
		return T(ctx, "from %s", day(from))
	}
	return T(ctx, "%s to %s", day(from), day(models.LastDay(*until)))
}

// limitAmounts formats a limit in one line, without the resources that it denies.
func limitAmounts(ctx context.Context, limit models.Resources) string {
	if limit == (models.Resources{}) {
		return T(ctx, "no resources")
	}
	return amounts(ctx, slices.DeleteFunc(limit.Amounts(), func(a models.Amount) bool { return a.Value == 0 }))
}

// amounts formats resources in one line.
func amounts(ctx context.Context, list []models.Amount) string {
	var parts []string
	for _, a := range list {
		parts = append(parts, TT(ctx, a.Label)+" "+models.Quantity(a.Name, a.Value))
	}
	return strings.Join(parts, " · ")
}

// excess formats by how much a vector exceeds its limit.
func excess(ctx context.Context, over []models.Excess) string {
	var parts []string
	for _, e := range over {
		parts = append(parts, T(ctx, "%s: %s required, %s remaining", TT(ctx, e.Label),
			models.Quantity(e.Name, e.Value), models.Quantity(e.Name, max(0, e.Limit))))
	}
	return strings.Join(parts, T(ctx, "; "))
}
