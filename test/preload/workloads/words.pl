# Hashes, sorting and regular expressions over generated text.
use strict;
use warnings;

my $state = 12345;

sub number {
  $state = ($state * 1103515245 + 12345) % 2147483648;
  return int($state / 65536) % $_[0];
}

sub word {
  return join '', map { chr(97 + number(26)) } 1 .. 2 + number(8);
}

my %count;
my @lines;
for (1 .. 6000) {
  my $line = join ' ', map { word() } 1 .. 12;
  push @lines, $line;
  $count{$_}++ for split / /, $line;
}

my @top = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
print "$_ $count{$_}\n" for @top[0 .. 30];

my $hits = 0;
for my $line (@lines) {
  $hits++ while $line =~ /\b([a-m]+)([n-z]+)\b/g;
  $line =~ s/([aeiou])(\w)/$2$1/g;
}
print "$hits\n";

my %nested;
push @{ $nested{ substr $_, 0, 1 }{ length $_ } }, $_ for sort keys %count;
for my $letter (sort keys %nested) {
  print "$letter ", join(',', map { "$_:" . @{ $nested{$letter}{$_} } } sort keys %{ $nested{$letter} }), "\n";
}
print length(join "\n", @lines), "\n";
