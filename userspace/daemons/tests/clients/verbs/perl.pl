# SPDX-License-Identifier: GPL-2.0-only
#
# Redis and Redis::Fast of CPAN, which are used alike: perl.pl MODULE ADDRESS. See check.
use strict;
use warnings FATAL => "all";

my ($module, $where) = @ARGV;
eval "require $module" or die $@;
my $client = $module->new($where =~ m{^/} ? (sock => $where) :
			  (server => "127.0.0.1:$where", password => "secret"));

sub text
{
	my ($answer) = @_;

	return "nil" if !defined $answer;
	return "[" . join("|", map { text($_) } @$answer) . "]" if ref $answer;
	return $answer;
}

my $gathering;
$| = 1;
while (my $line = <STDIN>) {
	chomp $line;
	my ($verb, @words) = split / /, $line;
	# In a list it would give an array's members.
	my $answer = eval { text(scalar $client->$verb(@words)) };

	$answer = "!" . $@ =~ s/^\[.*?\] //r if $@;
	$gathering = 1 if $verb eq "MULTI";
	$gathering = 0 if $verb eq "EXEC";
	print $answer =~ s/\n/ /gr, "\n" if !$gathering;
}
