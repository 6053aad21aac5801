package models

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

var errQuantity = errors.New("not a quantity")

// ErrTooLarge is the error of ParseCount for a number above MaxAmount.
var ErrTooLarge = errors.New("too large")

// ParseMiB parses an amount of memory, such as "16 GiB", "1.5G" or "512MiB", and
// returns MiB, rounded up. The unit of a bare number is bare MiB.
func ParseMiB(s string, bare int64) (int64, error) {
	number, unit := splitQuantity(s)
	scale, ok := map[string]float64{
		"": float64(bare), "m": 1, "mi": 1, "mib": 1, "mb": 1,
		"g": 1 << 10, "gi": 1 << 10, "gib": 1 << 10, "gb": 1 << 10,
		"t": 1 << 20, "ti": 1 << 20, "tib": 1 << 20, "tb": 1 << 20,
	}[unit]
	if !ok {
		return 0, errQuantity
	}
	return scaled(number, scale)
}

// ParseCPU parses an amount of CPU, "4", "1.5" or "500m", and returns
// thousandths of a core, rounded up.
func ParseCPU(s string) (int64, error) {
	number, unit := splitQuantity(s)
	switch unit {
	case "":
		return scaled(number, 1000)
	case "m":
		return scaled(number, 1)
	default:
		return 0, errQuantity
	}
}

// ParseCount parses a whole number.
func ParseCount(s string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	switch {
	case n > MaxAmount: // also where it is out of the range of integers
		return 0, ErrTooLarge
	case err != nil || n < 0:
		return 0, errQuantity
	}
	return n, nil
}

func splitQuantity(s string) (number, unit string) {
	s = strings.TrimSpace(s)
	cut := strings.IndexFunc(s, unicode.IsLetter)
	if cut < 0 {
		return s, ""
	}
	return strings.TrimSpace(s[:cut]), strings.ToLower(s[cut:])
}

func scaled(number string, scale float64) (int64, error) {
	if number == "" || strings.Trim(number, "0123456789.") != "" {
		return 0, errQuantity
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(f) {
		return 0, errQuantity
	}
	// Slightly less: binary fractions would make 2008 thousandths of 2.007.
	if f = math.Ceil(f * scale * (1 - 1e-15)); f > float64(MaxAmount) {
		return 0, ErrTooLarge
	}
	return int64(f), nil
}

// Quantity formats an amount of the named resource for people: "50 cores",
// "16 GiB", "1.5 CPU", and "∞" for an unlimited one.
func Quantity(name string, value int64) string {
	switch {
	case IsUnlimited(value):
		return unlimitedSign
	case name == "cpu_milli":
		return hundredths(value / 10)
	case strings.HasSuffix(name, "_mib"):
		return FormatMiB(value)
	default:
		return strconv.FormatInt(value, 10)
	}
}

// ExactQuantity is Quantity with as many decimals as it takes to parse without loss, for
// forms.
func ExactQuantity(name string, value int64) string {
	switch {
	case IsUnlimited(value):
		return UnlimitedWord
	case name == "cpu_milli":
		return strconv.FormatFloat(float64(value)/1000, 'f', -1, 64)
	case !strings.HasSuffix(name, "_mib"), value < 10<<10, value%1024 == 0 && (value < 10<<20 || value%(1<<20) == 0):
		return Quantity(name, value)
	}
	return exactGiB(value)
}

// FormatBytes formats a number of bytes with two or three digits: "512 B", "1.5 KiB", "16 GiB".
func FormatBytes(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, unit := float64(n)/1024, 0
	for ; value >= 1000 && unit < 4; unit++ {
		value /= 1024
	}
	digits := 0
	if value < 10 {
		digits = 1
	}
	return strconv.FormatFloat(value, 'f', digits, 64) + " " + []string{"KiB", "MiB", "GiB", "TiB", "PiB"}[unit]
}

// FormatMiB formats an amount of MiB: "512 MiB", "1.5 GiB", "16 GiB", "12.5 TiB". Below 10 GiB
// it parses without loss.
func FormatMiB(mib int64) string {
	switch {
	case mib%(1<<20) == 0 && mib != 0, mib >= 10<<20, mib <= -10<<20:
		return hundredths(mib*100/(1<<20)) + " TiB"
	case mib%1024 == 0, mib >= 10<<10, mib <= -10<<10:
		return hundredths(mib*100/1024) + " GiB"
	case mib <= -1<<10:
		return "-" + exactGiB(-mib)
	case mib >= 1<<10:
		return exactGiB(mib)
	default:
		return fmt.Sprintf("%d MiB", mib)
	}
}

// exactGiB formats an amount of MiB in GiB, with as many decimals as it takes to parse
// without loss.
func exactGiB(mib int64) string {
	for scale, decimals := 1.0, 0; decimals <= 4; scale, decimals = scale*10, decimals+1 {
		number := strconv.FormatFloat(math.Floor(float64(mib)/1024*scale)/scale, 'f', decimals, 64)
		if n, err := scaled(number, 1024); err == nil && n == mib { // which rounds up
			return number + " GiB"
		}
	}
	return strconv.FormatInt(mib, 10) + " MiB"
}

// hundredths formats a number of hundredths with at most two decimals. What is cut off makes
// an amount smaller, so that a shown limit that somebody enters is within the limit.
func hundredths(n int64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", float64(n)/100), "0"), ".")
}

// Ranges are sorted numbers such as 0–3, 5.
func Ranges(list []int) string {
	var words []string
	for i := 0; i < len(list); {
		last := i
		for last+1 < len(list) && list[last+1] == list[last]+1 {
			last++
		}
		word := strconv.Itoa(list[i])
		if last > i {
			word += "–" + strconv.Itoa(list[last])
		}
		words = append(words, word)
		i = last + 1
	}
	return strings.Join(words, ", ")
}
